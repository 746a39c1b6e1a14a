"""Whether the workers together found what one process finds alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shmq.demo.definitions import Definitions, Result

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """Files, each by name.

    Attributes:
        lost: without a result.
        doubled: with a result more that did not say it might be a repeat; where each has one only, with any more.
        wrong: with a result that is not the right one, or that nobody asked for.
        redelivered: with a result that said it might be a repeat, rightly: its worker's predecessor died.
    """

    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    wrong: tuple[str, ...]
    redelivered: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Each file has its right result, once, but for repeats that say so."""
        return not (self.lost or self.doubled or self.wrong)


def compare(expected: Mapping[str, Definitions], results: Iterable[Result], *, once: bool = False) -> Comparison:
    """expected: by file, from one process alone. results: of the workers, in any order. once: no file may have two."""
    by_file: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_file[result.file].append(result)
    return Comparison(
        lost=tuple(sorted(expected.keys() - by_file.keys())),
        doubled=tuple(
            sorted(file for file, given in by_file.items() if sum(once or not each.redelivered for each in given) > 1)
        ),
        wrong=tuple(
            sorted(
                file
                for file, given in by_file.items()
                if any(result.definitions != expected.get(file) for result in given)
            )
        ),
        redelivered=tuple(
            sorted(file for file, given in by_file.items() if any(result.redelivered for result in given))
        ),
    )
