"""Reads the structs of the shared segment from the C headers, and asks the C compiler for their sizes and offsets.

Names, types and remarks come from the text of the headers; every number comes from the compiler.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CORE: Final = ROOT / "native" / "src"
SOURCES: Final = [CORE / name for name in ("segment/segment_layout.c", "base/crc32c.c", "base/status.c")]
# In the order in which a reader meets them.
HEADERS: Final = ("segment.h", "process.h", "settings.h", "queue.h", "slot.h", "block.h")

# numpy's names of C types. Words that change atomically are bare integers in memory.
FORMATS: Final = {
    "char": "S",
    "unsigned char": "u1",
    "uint8_t": "u1",
    "uint16_t": "<u2",
    "uint32_t": "<u4",
    "uint64_t": "<u8",
    "int32_t": "<i4",
    "shmq_a16": "<u2",
    "shmq_a32": "<u4",
    "shmq_a64": "<u8",
}
NAMELESS: Final = "struct"  # its fields stand behind it

STRUCT = re.compile(r"typedef struct (?P<name>shmq_\w+_shm) \{(?P<body>.*?)^\} (?P=name);", re.DOTALL | re.MULTILINE)
TOKEN = re.compile(
    r"/\*(?P<remark>.*?)\*/|(?P<open>(?:struct|union)\s*\{)|(?P<close>\}[^;]*;)|(?P<field>[^;{}/]+;)", re.DOTALL
)
DECLARATION = re.compile(r"(?P<type>(?:unsigned )?\w+)\s+(?P<names>.*)", re.DOTALL)
DECLARATOR = re.compile(r"(?P<name>\w+)\s*(?P<array>\[.*\])?")
PADDING = re.compile(r"(^|_)pad\d*$|^reserved(_\d+)?$|_reserved$")


@dataclass
class Field:
    """One field: `path` as C writes it in its struct, `count` of an array (0: none), offset and size of all of it."""

    path: str
    type: str
    is_array: bool
    remark: str = ""
    offset: int = 0
    bytes: int = 0
    count: int = 0

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def is_padding(self) -> bool:
        return PADDING.search(self.name) is not None

    @property
    def struct(self) -> str | None:
        """The name of the struct that this field is (an array of); None for numbers and bytes."""
        return self.type.removeprefix("shmq_").removesuffix("_shm") if self.type.endswith("_shm") else None


@dataclass
class Struct:
    """A struct in shared memory, by its short name: "slot" is shmq_slot_shm."""

    name: str
    header: str
    fields: list[Field] = field(default_factory=list)
    bytes: int = 0

    @property
    def c_name(self) -> str:
        return f"shmq_{self.name}_shm"


@dataclass(frozen=True)
class SharedLayout:
    structs: list[Struct]
    fingerprint: int  # what the library writes into each segment that it makes


class Unreadable(Exception):
    """The headers, or the answer of the compiler, are not what this tool understands."""


def fields_of(body: str) -> Iterator[Field]:
    """Yields the fields of a struct's body in order; behind an array of nameless structs those of its element 0."""
    opened: list[int] = []
    fields: list[Field] = []
    for token in TOKEN.finditer(body):
        if token.group("remark") is not None:
            same_line = "\n" not in body[body.rfind(";", 0, token.start()) + 1 : token.start()]
            if fields and same_line and not fields[-1].remark:
                fields[-1].remark = " ".join(token.group("remark").split())
        elif token.group("open"):
            opened.append(len(fields))
        elif token.group("close"):
            start = opened.pop()
            name = DECLARATOR.search(token.group("close")[1:])
            if name is None:
                continue  # nameless: its fields are the outer one's
            is_array = name.group("array") is not None
            for inner in fields[start:]:
                inner.path = f"{name.group('name')}{'[0]' if is_array else ''}.{inner.path}"
            fields.insert(start, Field(name.group("name"), NAMELESS, is_array))
        else:
            fields += declared(token.group("field"))
    return iter(fields)


def declared(text: str) -> Iterator[Field]:
    match = DECLARATION.fullmatch(text.strip().rstrip(";").strip())
    if match is None:
        raise Unreadable(f"not understood as a field: {text!r}")
    for name in re.split(r",\s*(?![^\[]*\])", match.group("names")):
        declarator = DECLARATOR.fullmatch(name.strip())
        if declarator is None:
            raise Unreadable(f"not understood as a name: {name!r} in {text!r}")
        kind = match.group("type")
        if kind not in FORMATS and not kind.endswith("_shm"):
            raise Unreadable(f"no format is known for type {kind} of field {name}")
        yield Field(declarator.group("name"), kind, declarator.group("array") is not None)


def structs_in(core: Path = CORE) -> list[Struct]:
    """Returns the shared structs that the headers declare, without sizes and offsets."""
    found = []
    for header in HEADERS:
        for match in STRUCT.finditer((core / "layout" / header).read_text()):
            name = match.group("name").removeprefix("shmq_").removesuffix("_shm")
            found.append(Struct(name, header, list(fields_of(match.group("body")))))
    if not found:
        raise Unreadable(f"no shared struct was found below {core}")
    return found


def questions(structs: list[Struct]) -> str:
    """Returns a C program that prints the size of each struct, and offset, size and count of each field."""
    lines = [f'#include "layout/{header}"' for header in HEADERS]
    lines += ['#include "segment/segment_layout.h"', "#include <stdio.h>", "int main(void) {"]
    for struct in structs:
        c = struct.c_name
        lines.append(f'    printf("%zu\\n", sizeof({c}));')
        for part in struct.fields:
            value = f"(({c} *)0)->{part.path}"
            if part.name == "inline_area":  # reaches to the end of the slot, whose size is the queue's
                lines.append(f'    printf("%zu 0 0\\n", offsetof({c}, {part.path}));')
                continue
            count = f"sizeof({value}) / sizeof({value}[0])" if part.is_array else "(size_t)0"
            lines.append(f'    printf("%zu %zu %zu\\n", offsetof({c}, {part.path}), sizeof({value}), {count});')
    lines += ['    printf("%llu\\n", (unsigned long long)shmq_fingerprint());', "    return 0;", "}", ""]
    return "\n".join(lines)


def compiler() -> str:
    wanted = os.environ.get("CC", "").split()
    for name in [*wanted[:1], "cc", "gcc", "clang"]:
        if path := shutil.which(name):
            return path
    raise Unreadable("no C compiler was found (tried: cc, gcc, clang; CC names another one)")


def answers(program: str) -> list[str]:
    """Compiles a program against the headers, runs it, and returns its lines."""
    with tempfile.TemporaryDirectory(prefix="layout-") as directory:
        source, binary = Path(directory, "layout.c"), Path(directory, "layout")
        source.write_text(program)
        flags = ["-std=c11", "-D_GNU_SOURCE", f"-I{CORE}", "-o", str(binary)]
        command = [compiler(), *flags, str(source), *map(str, SOURCES), "-lpthread"]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode != 0:
            raise Unreadable(f"the headers do not compile\n{built.stderr}")
        return subprocess.run([binary], capture_output=True, text=True, check=True).stdout.splitlines()


def shared_layout() -> SharedLayout:
    """Returns all shared structs with the compiler's sizes and offsets, and the layout's fingerprint."""
    structs = structs_in()
    lines = iter(answers(questions(structs)))
    for struct in structs:
        struct.bytes = int(next(lines))
        for part in struct.fields:
            part.offset, part.bytes, part.count = map(int, next(lines).split())
    return SharedLayout(structs, int(next(lines)))
