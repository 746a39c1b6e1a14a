"""tools/flips in the suite: 20,000 damaged words, a million with SHMQ_FULL=1; and a proof that it can fail."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.repo.tree import ROOT
from tests.support.size import sized

FLIPS = sized(20_000, 1_000_000)


def flips(count: int, seed: int, *more: str) -> tuple[int, Any]:
    words = ["--count", str(count), "--seed", str(seed), "--limit", "60", "--json", *more]
    done = subprocess.run(
        [sys.executable, ROOT / "tools", "instruments.flips", *words], stdout=subprocess.PIPE, text=True, check=False
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.timeout(sized(1500, 80_000))  # about 40 s of one CPU; beside much else it has a small part of one
def test_no_damage_under_several_processes_crashes_hangs_or_shows_a_wrong_body(
    seed: int, figure: Callable[..., None]
) -> None:
    """Shows G7."""
    code, report = flips(FLIPS, seed)
    kinds = Counter(failure["kind"] for failure in report["failures"])
    crashes = kinds["signal"] + kinds["exception"]
    figure("flips", flips=report["flips"], crashes=crashes, hangs=kinds["hang"], wrong=kinds["wrong"])
    assert report["failures"] == []
    assert code == 0
    assert report["flips"] == FLIPS
    print(f"{report['flips']:,} flips, {report['calls']:,} calls, {report['seconds']} s: {report['answers']}")
    # It did reach what it is for: some calls met damage, and most went on beside it.
    assert report["answers"]["CorruptionError"] > FLIPS / 20
    assert report["answers"]["right"] > report["calls"] / 3


def test_wrong_bodies_are_found_where_nothing_guards_them(seed: int) -> None:
    code, report = flips(1500, seed, "--without-checksums")
    assert code == 1
    assert "wrong" in {failure["kind"] for failure in report["failures"]}
