"""The size and the words of the tree: files and functions stay short, names say something."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repo.tree import ROOT, files, name_of

FILE_LINES = 500
FUNCTION_LINES = 70
PAGE_WIDTH = 120
CODE = (".py", ".pyi", ".c", ".h")
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
# Split, so that this file does not hold what it looks for.
FORBIDDEN_WORDS = ["../" + "shared", "/" + "work/"]

# A sentence names its actor; what is written for people stands in these places.
WITHOUT_ACTOR = re.compile(r"\bW" + r"(?:ho|hat|hoever|hatever)\b")
WRITTEN_FOR_PEOPLE = [
    ("native", ()),
    ("shmq", ()),
    ("tools", ()),
    ("docs", ()),
    ("bench", ()),
    ("tests", ()),
    (".", ("README.md",)),
]

# Literals first: a brace or a comment sign inside one means nothing.
C_NOISE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
C_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
C_NAME = re.compile(r"(\w+)\s*\([^{};]*\)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)?$", re.DOTALL)


def blank(match: re.Match[str]) -> str:
    """Keeps only the line breaks of what it replaces, so that line numbers stay right."""
    return "\n" * match.group().count("\n")


def python_functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Yields name, first line and number of lines of each function; its decorators and docstring are not counted."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            documented = ast.get_docstring(node) is not None
            docstring = (body[0].end_lineno or 0) - body[0].lineno + 1 if documented else 0
            yield node.name, node.lineno, (node.end_lineno or 0) - node.lineno + 1 - docstring


def c_functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Yields name, first line and number of lines of each function body, found by counting braces."""
    text = C_DIRECTIVE.sub(blank, C_NOISE.sub(blank, source))
    depth = opened = start = 0
    name = ""
    for position, character in enumerate(text):
        if character == "{":
            depth += 1
            if depth == 1:
                match = C_NAME.search(text[start:position].rstrip())
                name, opened = (match.group(1) if match else ""), position
        elif character == "}":
            depth -= 1
            if depth == 0:
                if name:
                    first = text.count("\n", 0, opened) + 1
                    yield name, first, text.count("\n", opened, position) + 1
                start = position + 1
        elif character == ";" and depth == 0:
            start = position + 1


def functions_of(path: Path) -> Iterator[tuple[str, int, int]]:
    source = path.read_text()
    return python_functions(source) if path.suffix in {".py", ".pyi"} else c_functions(source)


def code_files() -> list[Path]:
    return list(files(".", *CODE))


def test_no_file_is_longer_than_the_limit() -> None:
    lengths = [(name_of(path), len(path.read_text().splitlines())) for path in code_files()]
    long = [f"{name}: {lines} lines" for name, lines in lengths if lines > FILE_LINES]
    assert not long, f"more than {FILE_LINES} lines, split by noun:\n" + "\n".join(long)


def test_no_function_is_longer_than_the_limit() -> None:
    long = [
        f"{name_of(path)}:{line} {name}: {lines} lines"
        for path in code_files()
        for name, line, lines in functions_of(path)
        if lines > FUNCTION_LINES
    ]
    assert not long, f"more than {FUNCTION_LINES} lines:\n" + "\n".join(long)


def test_every_name_of_a_file_or_folder_says_something() -> None:
    def words(part: str) -> set[str]:
        return set(re.split(r"[^a-z]+", part.lower()))

    empty = [name_of(path) for path in files() for part in path.relative_to(ROOT).parts if words(part) & EMPTY_NAMES]
    assert not empty, "name these after what they hold:\n" + "\n".join(empty)


def test_no_file_names_places_outside_the_tree() -> None:
    wrong = [
        f"{name_of(path)} holds {word!r}"
        for path in files()
        for word in FORBIDDEN_WORDS
        if word.encode() in path.read_bytes()
    ]
    assert not wrong, "\n".join(wrong)


def long_lines(page: str) -> list[int]:
    """Of prose: a table, a program and a single name cannot be broken."""
    found, is_program = [], False
    for number, line in enumerate(page.splitlines(), 1):
        text = line.strip()
        is_program ^= text.startswith("```")
        if len(line) > PAGE_WIDTH and not is_program and not text.startswith("|"):
            words = re.sub(r"`[^`]*`", "name", text.removeprefix("* ")).split(" ")
            found += [number] if len(words) > 1 else []
    return found


def test_prose_of_pages_is_wrapped() -> None:
    generated = {"docs/api.md", "docs/memory-layout.md"}
    pages = [path for path in files(".", ".md") if name_of(path) not in generated]
    long = [f"{name_of(path)}:{number}" for path in pages for number in long_lines(path.read_text())]
    assert len(pages) > 50
    assert not long, f"longer than {PAGE_WIDTH} characters:\n" + "\n".join(long)


def test_a_long_line_is_found_where_it_can_be_broken() -> None:
    word, program = "word " * 30, "```\n" + "word " * 30 + "\n```\n"
    assert long_lines(f"{program}| {word} |\n{word}\n* `{word}`\n* `{word}` and more\n") == [5, 7]


def sentences_without_actor(text: str) -> list[int]:
    """The lines on which a sentence, a title or a question begins with such a word: in the midst of one it is small."""
    return [number for number, line in enumerate(text.splitlines(), 1) if WITHOUT_ACTOR.search(line)]


def test_no_sentence_begins_without_its_actor() -> None:
    wrong = [
        f"{name_of(path)}:{number}"
        for folder, names in WRITTEN_FOR_PEOPLE
        for path in files(folder)
        if not names or name_of(path) in names
        for number in sentences_without_actor(path.read_text(errors="replace"))
    ]
    assert not wrong, "say which process or thread does it (docs/style.md):\n" + "\n".join(wrong)


def test_a_sentence_without_actor_is_found_wherever_it_begins() -> None:
    text = (
        "/* W"
        + "ho waits sleeps.\n * Done. W"
        + "ho\n * looks: *W"
        + "ho else?* The one who waits, whoever it is.\n * W"
        + "hatever comes, and what follows.\n * It ends: W"
        + "hat is left goes.\n */\n"
    )
    assert sentences_without_actor(text) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("int f(void) {\n    return 0;\n}\n", [("f", 1, 3)]),
        ("struct s {\n    int a;\n};\nstatic int g(int a,\n             int b)\n{\n    return a;\n}\n", [("g", 6, 3)]),
        ('int h(void) {\n    puts("}");\n    /* } */\n    if (1) {\n    }\n}\n', [("h", 1, 6)]),
        ("#define M(x) \\\n    {           \\\n    x\nint k(void) {\n}\n", [("k", 4, 2)]),
        ("static const int table[] = {\n    1,\n    2,\n};\n", []),
    ],
)
def test_functions_of_c_are_measured_by_their_braces(source: str, expected: list[tuple[str, int, int]]) -> None:
    assert list(c_functions(source)) == expected
