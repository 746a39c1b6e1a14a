"""The driver of the step killer as a child process: built, started with an order, its frames read."""

import fcntl
import json
import os
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy
from numpy.typing import NDArray

from builds.native_build import ROOT, call, command
from steps.instructions import disassembled, write_instructions
from steps.memory_operands import write_operands

Bytes = NDArray[numpy.uint8]
PAGE = 4096
HEAD = struct.Struct("<QQ")
NUMBER = struct.Struct("<I")
# A copy is then a loop of a few steps and not one step a byte, which would all leave the same.
NO_REPEATED_MOVES = "glibc.cpu.x86_rep_movsb_threshold=0x10000000:glibc.cpu.x86_rep_stosb_threshold=0x10000000"

ON_SLOTS, STEADY, LONG, DEAR = 1, 32, 128, 1024  # flags of a scenario, as in native/killstep/scenario.h


@dataclass(frozen=True)
class Scenario:
    name: str
    flags: int

    @property
    def on_slots(self) -> bool:
        return bool(self.flags & ON_SLOTS)

    @property
    def steady(self) -> bool:
        return bool(self.flags & STEADY)

    @property
    def long(self) -> bool:
        return bool(self.flags & LONG)

    @property
    def dear(self) -> bool:
        return bool(self.flags & DEAR)


@dataclass
class Line:
    """A result: what happened, in words and figures."""

    event: dict[str, Any]


@dataclass
class Snapshot:
    """An image of the segment. `kind` B: the prepared one; S: pages that go into it from now on; D: somebody may be
    dead in the midst of something; Q: all is quiet.
    """

    kind: str
    meta: dict[str, Any]
    pages: NDArray[numpy.uint32]
    content: Bytes


@dataclass
class History:
    where: dict[str, Any]
    calls: list[list[int]]


@dataclass
class Outcome:
    """The outcome of one scenario."""

    scenario: str
    steps: int = 0
    tried: int = 0
    left_path: int = 0
    images: int = 0
    nodes: int = 0  # distinct images and histories from which the next victim started
    pairs: int = 0  # deaths after the first
    spared: int = 0  # deaths that leave what is like something tried
    depth: int = 1
    whole: bool = True
    interrupted: bool = False  # it would have gone on
    seconds: float = 0.0
    broken: list[dict[str, Any]] = field(default_factory=list)


def build(root: Path = ROOT, directory: Path | None = None) -> Path:
    """Builds the driver from the sources of a tree, one process at a time, and returns the program."""
    directory = directory if directory is not None else root / "build" / "killstep"
    options = [
        "-DSHMQ_BUILD_PYTHON=OFF",
        "-DSHMQ_BUILD_KILLSTEP=ON",
        "-DSHMQ_WERROR=ON",
        f"-DCMAKE_MAKE_PROGRAM={command('ninja')}",
    ]
    program = directory / "killstep"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        call(command("cmake"), "-S", root / "native", "-B", directory, "-G", "Ninja", *options)
        call(command("cmake"), "--build", directory, "--target", "killstep")
        write_tables(program)
    return program


def code_of(program: Path) -> Path:
    return program.with_name("killstep.code")


def operands_of(program: Path) -> Path:
    return program.with_name("killstep.operands")


def write_tables(program: Path) -> None:
    """Writes the tables of the program's instructions. Without a disassembler the driver goes longer ways."""
    tables = code_of(program), operands_of(program)
    if all(table.exists() and table.stat().st_mtime >= program.stat().st_mtime for table in tables):
        return
    for table in tables:
        table.unlink(missing_ok=True)
    instructions = disassembled(program)
    if instructions is not None:
        write_instructions(instructions, code_of(program))
        write_operands(instructions, operands_of(program))


def scenarios(program: Path) -> list[Scenario]:
    text = subprocess.run([program, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [Scenario(name, int(flags)) for name, flags in (line.split() for line in text.splitlines())]


def read_frames(stream: IO[bytes]) -> Iterator[Line | Snapshot | History]:
    while len(head := stream.read(HEAD.size)) == HEAD.size:
        number, length = HEAD.unpack(head)
        payload = stream.read(length)
        if len(payload) != length:
            return  # it was ended in the midst of it
        kind = chr(number)
        if kind == "L":
            yield Line(json.loads(payload))
        elif kind == "H":
            text = json.loads(payload)
            yield History(text["where"], text["calls"])
        else:
            (meta_length,) = NUMBER.unpack_from(payload)
            at = NUMBER.size + meta_length
            (count,) = NUMBER.unpack_from(payload, at)
            pages = numpy.frombuffer(payload, numpy.uint32, count, at + NUMBER.size)
            content = numpy.frombuffer(payload, numpy.uint8, count * PAGE, at + NUMBER.size + 4 * count)
            meta = json.loads(payload[NUMBER.size : at])
            yield Snapshot(kind, meta, pages, content.reshape(count, PAGE))


def start(program: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    environment = dict(os.environ, GLIBC_TUNABLES=NO_REPEATED_MOVES)
    return subprocess.Popen(
        [program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # else a terminal's Ctrl-C ends the processes of its state one by one
    )


def why_ptrace_is_forbidden(program: Path) -> str | None:
    """None: a process may trace its own children here, with debug registers."""
    result = subprocess.run(
        [program, "--probe"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    return None if result.returncode == 0 else result.stdout.strip() or f"exit code {result.returncode}"


def stop(driver: subprocess.Popen[bytes]) -> str:
    """Ends a driver and returns what it said on standard error."""
    assert driver.stdout is not None
    assert driver.stderr is not None
    if driver.poll() is None:
        driver.terminate()  # it unlinks its segment
        deadline = time.monotonic() + 5
        while driver.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if driver.poll() is None:
            driver.kill()
    said = driver.stderr.read().decode(errors="replace").strip()
    driver.wait()
    driver.stdout.close()
    driver.stderr.close()
    return said
