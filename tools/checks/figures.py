"""Figures that the tests have measured: collected from their reports, kept in build/figures.json until the next run.

A test hands a figure over with the fixture `figure`: figure("deaths", rounds=20, p99_ms=31.0).
"""

import json
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from builds.environment import ROOT

FIGURES = ROOT / "build" / "figures.json"
PREFIX = "figure:"

Figures = dict[str, dict[str, dict[str, float]]]  # by figure, then by test, then by value


def read_report(report: Path) -> Figures:
    """The figures of one run of pytest, from its report in JUnit's format."""
    found: Figures = {}
    for case in ElementTree.parse(report).iter("testcase"):
        test = f"{case.get('classname')}.{case.get('name')}"
        for entry in case.iter("property"):
            name, value = entry.get("name", ""), entry.get("value", "")
            if name.startswith(PREFIX):
                found.setdefault(name.removeprefix(PREFIX), {})[test] = json.loads(value)
    return found


def _git(*words: str) -> str:
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def load() -> dict[str, Any]:
    try:
        kept = json.loads(FIGURES.read_text())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def keep(found: Figures) -> None:
    """Puts the figures of a run in the place of older ones of the same tests."""
    if not found:
        return
    commit = _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain") else "")
    kept = load()
    for name, tests in found.items():
        # A figure of another state of the tree says nothing about this one.
        same = {test: one for test, one in kept.get(name, {}).items() if one.get("commit") == commit}
        for test, values in tests.items():
            same[test] = {"commit": commit, "at": time.strftime("%Y-%m-%d %H:%M"), "values": values}
        kept[name] = same
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps(kept, indent=1, sort_keys=True))
