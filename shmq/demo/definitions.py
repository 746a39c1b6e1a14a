"""The work on one file: what its source defines and imports."""

from __future__ import annotations

import ast
import warnings
from typing import Any, NamedTuple

__all__ = ["Definitions", "Result", "kinds_in", "lines_of"]


def lines_of(source: bytes) -> int:
    """Lines of text, the last one also without an end."""
    return source.count(b"\n") + (not source.endswith(b"\n") and source != b"")


def kinds_in(source: bytes) -> list[str] | None:
    """Definitions and imports: "function", "class" or "import" for each; None: this is no source."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the source, not about us
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append("function")
        elif isinstance(node, ast.ClassDef):
            found.append("class")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.append("import")
    return found


class Definitions(NamedTuple):
    """Counts of one file.

    Attributes:
        functions: definitions of functions, methods included.
        classes: definitions of classes.
        imports: import statements.
        lines: of text.
        parsed: False: this is no source that this Python understands; then the first three are 0.
    """

    functions: int
    classes: int
    imports: int
    lines: int
    parsed: bool

    @classmethod
    def of(cls, source: bytes) -> Definitions:
        """Parse and count."""
        kinds, lines = kinds_in(source), lines_of(source)
        if kinds is None:
            return cls(0, 0, 0, lines, False)
        return cls(kinds.count("function"), kinds.count("class"), kinds.count("import"), lines, True)


class Result(NamedTuple):
    """A worker's answer about a file.

    Attributes:
        file: its name.
        definitions: its counts.
        redelivered: an earlier attempt at it may have been made, and may have given a result, too.
    """

    file: str
    definitions: Definitions
    redelivered: bool

    def to_body(self) -> list[Any]:
        """As the body of a message: JSON."""
        return [self.file, list(self.definitions), self.redelivered]

    @classmethod
    def of_body(cls, body: list[Any]) -> Result:
        """Back again."""
        return cls(body[0], Definitions(*body[1]), body[2])
