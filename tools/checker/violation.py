"""The words of a rule that does not hold."""

from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Violation:
    """A rule that does not hold: its name, the place in the segment, and what was found there."""

    rule: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.text}"


@dataclass
class Findings:
    """Violations as they are found. A rule that is broken everywhere is told a few times, not a thousand."""

    violations: list[Violation] = field(default_factory=list)
    most: int = 20
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, rule: str, where: str, text: str) -> None:
        count = self.counts.get(rule, 0)
        self.counts[rule] = count + 1
        if count < self.most:
            self.violations.append(Violation(rule, where, text))

    def expect(self, holds: object, rule: str, where: str, text: str) -> bool:
        """Adds a violation unless it holds; answers whether it does."""
        if not holds:
            self.add(rule, where, text)
        return bool(holds)
