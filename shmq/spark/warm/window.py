"""The order of a task's replies, which come as the workers are ready with them."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Window"]

T = TypeVar("T")


class Window(Generic[T]):
    """Replies by number; each counts once.

    A worker that is killed between its reply and the end of its request leaves a request that is answered again.

    Example:
        >>> window = Window()
        >>> first, second = window.open(), window.open()
        >>> window.put(second, "b")
        >>> window.take()
        []
        >>> window.put(first, "a")
        >>> window.take()
        ['a', 'b']
    """

    def __init__(self) -> None:
        self._opened = 0
        self._taken = 0
        self._held: dict[int, T] = {}

    @property
    def size(self) -> int:
        """Numbers that are given and not taken."""
        return self._opened - self._taken

    @property
    def missing(self) -> int:
        """Numbers for which there is no reply yet."""
        return self.size - len(self._held)

    def open(self) -> int:
        """Returns the next number."""
        self._opened += 1
        return self._opened - 1

    def put(self, number: int, value: T) -> None:
        """Keeps a reply, unless it came before."""
        if number >= self._taken:
            self._held.setdefault(number, value)

    def take(self) -> list[T]:
        """Returns the replies whose turn has come."""
        found = []
        while self._taken in self._held:
            found.append(self._held.pop(self._taken))
            self._taken += 1
        return found
