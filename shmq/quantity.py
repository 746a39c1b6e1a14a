"""Numbers with what they count, in texts for people."""

from __future__ import annotations

__all__ = ["quantity"]


def quantity(number: int, noun: str) -> str:
    """The number with its noun in singular or plural, which is made by an "s" (after "ss" by "es").

    Arguments:
        number: how many.
        noun: of one; where it has several words, the last one changes.

    Example:
        >>> quantity(1, "message"), quantity(1500, "message"), quantity(0, "process")
        ('1 message', '1,500 messages', '0 processes')
    """
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('ss') else 's'}"
