"""tools/backlog in the suite: 100,000 messages, a million with SHMQ_FULL=1; and a proof that it can fail."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.repo.tree import ROOT
from tests.support.offspring import eventually
from tests.support.size import sized

MESSAGES = sized(100_000, 1_000_000)
SMALL = "30000"  # messages: they have no room in the memory that the queue may use


def command(seed: int, directory: Path, *more: str) -> list[str | Path]:
    return [
        sys.executable,
        ROOT / "tools",
        "instruments.backlog",
        "--seed",
        str(seed),
        "--directory",
        directory,
        "--json",
        *more,
    ]


def backlog(seed: int, directory: Path, *more: str) -> tuple[int, Any]:
    done = subprocess.run(command(seed, directory, *more), stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.timeout(sized(900, 3000))
def test_producers_consumers_and_movers_of_a_deep_backlog_are_killed_and_nothing_is_lost_or_doubled(
    seed: int, tmp_path: Path, figure: Callable[..., None]
) -> None:
    """Shows G3, G5."""
    code, report = backlog(seed, tmp_path, "--messages", str(MESSAGES), "--kill-every", "0.03")
    print({name: value for name, value in report.items() if name != "faults"})
    kills = report["killed_producers"] + report["killed_consumers"]
    figure("backlog kills", messages=report["came"], kills=kills, broken=report["broken"])
    assert report["faults"] == []
    assert code == 0
    # It did what it is for; margins for a machine that is busy with other things.
    assert report["came"] > MESSAGES - 3 - report["puts_in_doubt"]
    assert report["deepest"] > MESSAGES // 3
    assert report["disk_mib"] > MESSAGES // 3 / 1024 - 64
    assert kills > 10
    assert report["killed_movers"] > 0
    assert 0 < report["segment_mib"] <= 64
    assert report["growth_mib"] < 32
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("lose", "were accepted, and are lost"),
        ("double", "came again after its ack had returned|as if for the first time|came after number"),
        ("reorder", "came after number"),
        ("grow", "a process has grown by"),
    ],
)
def test_a_mistake_on_purpose_is_found(fault: str, words: str, seed: int, tmp_path: Path) -> None:
    code, report = backlog(seed, tmp_path, "--messages", SMALL, "--kill-every", "0.5", "--fault", fault)
    assert code == 1
    assert any(re.search(words, text) for text in report["faults"]), report["faults"]


def test_ctrl_c_ends_it_with_a_verdict_and_leaves_nothing(seed: int, tmp_path: Path) -> None:
    process = subprocess.Popen(command(seed, tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: any(tmp_path.glob("*/broker/disk/*/*")), "something lies on disk")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    report = json.loads(out)
    assert "interrupted; the verdict so far" in err
    assert (process.returncode, report["interrupted"], report["faults"]) == (0, True, [])
    assert not list(tmp_path.iterdir())


def test_the_help_has_examples() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools", "instruments.backlog", "--help"], capture_output=True, text=True, check=True
    )
    assert "tools/backlog --messages 1000000 --seed 7" in done.stdout
