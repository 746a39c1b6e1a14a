"""The patterns of LIKE: _ is any one character, % any number of them, an escape character takes their meaning away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ANY_NUMBER", "Pattern"]

ANY_NUMBER: Final = -1


@dataclass(frozen=True)
class Pattern:
    """A pattern of LIKE, taken apart.

    parts: a text stands for itself, a number for so many characters of any kind, ANY_NUMBER for any number of them.
    """

    parts: tuple[str | int, ...]

    @classmethod
    def read(cls, text: str, escape: str | None = None) -> Pattern:
        """A pattern as it is written.

        Arguments:
            text: such as "a_c%".
            escape: one character, or None.

        Raises ValueError for an escape character that is followed by nothing or by anything but _, % or itself.

        Example: Pattern.read("a__c%").parts == ("a", 2, "c", ANY_NUMBER)
        """
        if escape is not None and len(escape) != 1:
            raise ValueError(f"ESCAPE {escape!r}: one character is expected")
        parts: list[str | int] = []
        characters = iter(text)
        for character in characters:
            part: str | int = character
            if character == escape:
                part = next(characters, "")
                if part not in ("_", "%", escape):
                    raise ValueError(f"LIKE {text!r}: the escape character stands before _, % or itself only")
            elif character == "%":
                part = ANY_NUMBER
            elif character == "_":
                part = 1
            before = parts[-1] if parts else None
            if isinstance(before, str) and isinstance(part, str):
                parts[-1] = before + part
            elif before == part == ANY_NUMBER:
                pass
            elif isinstance(before, int) and before > 0 and part == 1:
                parts[-1] = before + 1
            else:
                parts.append(part)
        return cls(tuple(parts))
