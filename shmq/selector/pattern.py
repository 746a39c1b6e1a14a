"""The patterns of LIKE: _ is any one character, % any number of them, an escape character takes their meaning away."""

from __future__ import annotations

import re

__all__ = ["Pattern"]


class Pattern:
    """A pattern of LIKE, made ready.

    Between two % lies a piece of fixed length, and the leftmost place where a piece fits is as good as any: so matching
    never goes back, and takes at most (length of the text) x (length of the pattern) steps.

    Arguments:
        text: the pattern as written.
        escape: one character, or None.

    Raises ValueError for an escape character that is followed by nothing or by anything but _, % or itself.

    Example: Pattern("a_c%").matches("abcdef") is True
    """

    def __init__(self, text: str, escape: str | None = None) -> None:
        if escape is not None and len(escape) != 1:
            raise ValueError(f"ESCAPE {escape!r}: one character is expected")
        self.text, self.escape = text, escape
        pieces: list[list[str]] = [[]]
        characters = iter(text)
        for character in characters:
            if character == escape:
                plain = next(characters, None)
                if plain not in ("_", "%", escape):
                    raise ValueError(f"LIKE {text!r}: the escape character stands before _, % or itself only")
                pieces[-1].append(re.escape(plain))
            elif character == "%":
                pieces.append([])
            else:
                pieces[-1].append("." if character == "_" else re.escape(character))
        compiled = [(len(piece), re.compile("".join(piece), re.DOTALL)) for piece in pieces]
        self._first, self._between, self._last = compiled[0], [p for p in compiled[1:-1] if p[0]], compiled[-1]
        self._has_any = len(compiled) > 1

    def matches(self, text: str) -> bool:
        if not self._has_any:
            return self._first[1].fullmatch(text) is not None
        at = self._first[0]
        end = len(text) - self._last[0]
        if end < at or self._first[1].match(text) is None or self._last[1].fullmatch(text, end) is None:
            return False
        for length, piece in self._between:
            found = piece.search(text, at, end)
            if found is None:
                return False
            at = found.start() + length
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and (self.text, self.escape) == (other.text, other.escape)

    def __hash__(self) -> int:
        return hash((self.text, self.escape))

    def __repr__(self) -> str:
        return f"Pattern({self.text!r}, {self.escape!r})"
