"""C and Python say the same of a queue's options as their table, and it fits the limits of the core."""

import shutil
import subprocess
from pathlib import Path

import pytest

import shmq._native as core
from shmq.options.queue_table import QUEUE_TABLE
from tests.repo.tree import ROOT

WRITTEN = ("native/src/layout/setting.h", "native/src/queue/setting_table.h", "shmq/options/queue_table.py")


def check(tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([tree / "tools" / "options", "--check"], capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The tool, its table and what it writes."""
    for name in (
        *WRITTEN,
        *(f"tools/{name}" for name in ("interpreter", "options", "__main__.py", "generate/options.py", "options.toml")),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_what_is_written_of_options_is_what_the_table_says() -> None:
    result = check(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_of_options_that_was_changed_by_hand_is_found(copy: Path, name: str) -> None:
    assert check(copy).returncode == 0
    path = copy / name
    path.write_text(path.read_text().replace("max_deaths", "max_deceases", 1))
    result = check(copy)
    assert result.returncode == 1
    assert f"{name}: differs from tools/options.toml" in result.stdout


def test_each_file_of_options_says_at_its_beginning_that_it_is_written_by_the_tool() -> None:
    assert [name for name in WRITTEN if "Written by tools/options" not in (ROOT / name).read_text()[:200]] == []


def test_an_option_that_is_added_to_the_table_is_in_each_file(copy: Path) -> None:
    table = copy / "tools" / "options.toml"
    more = (
        'name = "max_age"\nkind = "seconds"\nnone = true\ndefault = "never"\nleast = 0\nkept = "settings.max_age_ns"\n'
    )
    table.write_text(f'{table.read_text()}\n[[option]]\n{more}means = "seconds. Default {{default}}."\n')
    assert check(copy).stdout.count("differs") == len(WRITTEN)
    subprocess.run([copy / "tools" / "options"], check=True, capture_output=True)
    header, numbers, module = ((copy / name).read_text() for name in WRITTEN)
    assert f"SHMQ_SET_MAX_AGE = {len(QUEUE_TABLE)}," in header
    assert "uint64_t max_age_ns;" in header
    assert "NUMBER(max_age_ns, settings.max_age_ns, false, SHMQ_NEVER, 0, SHMQ_NEVER)" in numbers
    assert "    max_age: seconds. Default None.\n" in module
    assert "    max_age: float | None\n" in module


def test_the_ranges_of_options_are_those_of_the_core() -> None:
    most = {option.name: option.most for option in QUEUE_TABLE}
    least = {option.name: option.least for option in QUEUE_TABLE}
    assert (least["slot_size"], most["slot_size"]) == (core.SLOT_MIN, core.SLOT_MAX)
    assert most["max_bytes"] == core.MEMORY_MAX
    assert most["maxsize"] == core.COUNT_MAX
    assert most["live_consumers"] < core.CONSUMER_ROWS
