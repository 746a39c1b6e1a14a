"""Damages, each with the rules that it breaks."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.checker.scene import Scene

Damage = Callable[[Scene], None]


class Damages:
    """The damages of one test module; the name of each says what it does."""

    def __init__(self) -> None:
        self.known: list[tuple[set[str], Damage]] = []

    def breaks(self, *rules: str) -> Callable[[Damage], Damage]:
        def note(damage: Damage) -> Damage:
            self.known.append((set(rules), damage))
            return damage

        return note

    def each(self, test: Callable[..., Any]) -> Callable[..., Any]:
        """The test, once for each damage."""
        parameters = [pytest.param(rules, damage, id=damage.__name__) for rules, damage in self.known]
        decorated: Callable[..., Any] = pytest.mark.parametrize(("rules", "damage"), parameters)(test)
        return decorated

    @property
    def rules(self) -> set[str]:
        return {rule for rules, _ in self.known for rule in rules}
