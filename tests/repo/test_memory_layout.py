"""The drawing of the shared bytes, the numpy structures and the compiled library say the same."""

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import shmq
from generate import shared_structs
from shmq.core import layout
from tests.repo.tree import ROOT

Tool = Callable[[str], str]


@pytest.fixture(scope="module")
def compiled(tool: Tool) -> Any:
    """The structs as the C compiler of this machine lays them out."""
    tool("cc")
    return shared_structs.shared_layout()


def check(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [directory / "tools" / "layout_map", "--check"], capture_output=True, text=True, timeout=600, check=False
    )


def test_the_page_and_the_module_are_what_the_headers_say(tool: Tool) -> None:
    tool("cc")
    result = check(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("file", ["docs/memory-layout.md", "shmq/core/layout.py"])
def test_a_page_that_differs_from_the_headers_is_found(file: str, tmp_path: Path, tool: Tool) -> None:
    tool("cc")
    for name in ("docs", "native", "shmq", "tools"):
        (tmp_path / name).mkdir()
    (tmp_path / "native" / "src").symlink_to(ROOT / "native" / "src")
    for name in ("interpreter", "layout_map", "__main__.py", "generate/layout_map.py", "generate/shared_structs.py"):
        target = tmp_path / "tools" / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((ROOT / "tools" / name).read_bytes())
        target.chmod(0o755)
    (tmp_path / "shmq" / "core").mkdir()
    for name in ("docs/memory-layout.md", "shmq/core/layout.py"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    assert check(tmp_path).returncode == 0
    changed = (tmp_path / file).read_text().replace("4096", "4097", 1)
    (tmp_path / file).write_text(changed)
    result = check(tmp_path)
    assert result.returncode == 1
    assert file in result.stdout


def test_every_numpy_structure_has_the_offsets_of_the_compiler(compiled: Any) -> None:
    assert {struct.name for struct in compiled.structs} == set(layout.STRUCTS)
    for struct in compiled.structs:
        dtype = layout.dtype(struct.name)
        assert dtype.itemsize == struct.bytes, struct.name
        by_name = {part.path: part for part in struct.fields}
        assert dtype.fields is not None
        for name, (element, offset, *_) in dtype.fields.items():
            assert offset == by_name[name].offset, f"{struct.name}.{name}"
            assert element.itemsize == by_name[name].bytes, f"{struct.name}.{name}"


def test_every_field_that_is_no_padding_has_a_name_in_numpy(compiled: Any) -> None:
    for struct in compiled.structs:
        expected = {
            part.path
            for part in struct.fields
            if not part.is_padding and "." not in part.path and part.bytes and part.type != "struct"
        }
        assert set(layout.dtype(struct.name).names or ()) == expected, struct.name


def test_no_byte_of_a_struct_lies_outside_of_its_fields(compiled: Any) -> None:
    for struct in compiled.structs:
        covered = bytearray(struct.bytes)
        for part in struct.fields:
            covered[part.offset : part.offset + part.bytes] = b"\1" * part.bytes
        assert all(covered), f"{struct.name}: nothing stands at byte {covered.index(0)}"


def test_importing_the_layout_does_not_import_numpy() -> None:
    code = "import sys, shmq.core.layout; sys.exit('numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False)
    assert result.returncode == 0


@pytest.fixture
def live() -> Iterator[tuple[shmq.Broker, memoryview]]:
    """An anonymous broker, and its segment mapped for reading."""
    with shmq.open(None, memory="16MiB") as broker:
        name = broker._membership.live().name
        descriptor = os.open(f"/dev/shm/{name}", os.O_RDONLY)
        with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as view:
            os.close(descriptor)
            yield broker, view


def test_a_live_segment_reads_as_the_structures_say(live: tuple[shmq.Broker, memoryview]) -> None:
    broker, view = live
    queue = broker.queue("jobs", maxsize=2000)
    before = time.monotonic_ns()
    queue.put(b"hello", headers={})
    after = time.monotonic_ns()

    def at(name: str, offset: int) -> Any:
        # A copy: numpy would keep the mapping from being closed.
        return numpy.frombuffer(bytes(view[offset : offset + layout.dtype(name).itemsize]), layout.dtype(name))[0]

    header = at("segment", 0)
    assert int(header["fingerprint"]) == layout.FINGERPRINT
    assert int(header["size"]) == len(view)
    row = at("process", int(header["processes"]))
    assert int(row["pid"]) == os.getpid()
    entry = at("directory", int(header["directory"]))
    page = at("queue", int(entry["page"]))
    assert bytes(page["name"])[: int(page["name_len"])] == b"jobs"
    assert int(page["maxsize"]) == 2000
    ring = page["ring"]
    assert (1 << int(ring["shift"]), int(ring["tail"])) == (2048, 1)
    slot = at("slot", int(ring["slots"]))
    assert int(slot["word"]) & 15 == 3  # AVAILABLE
    assert int(slot["position"]) == 0
    assert before <= int(slot["enqueued_ns"]) <= after
    assert int(slot["body_len"]) >= 5
