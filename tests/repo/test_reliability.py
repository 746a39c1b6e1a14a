"""The table of goals sums up what tests hand over, and says when a goal is missed or nothing was measured."""

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from checks import figures
from checks import reliability as module
from tests.repo.tree import ROOT


@pytest.fixture
def reliability(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module behind tools/reliability, with a place of its own for what it keeps."""
    monkeypatch.setattr(figures, "FIGURES", tmp_path / "build" / "figures.json")
    return module


def kept(**values: object) -> dict[str, object]:
    return {"commit": "abc", "at": "", "values": values}


def test_counts_are_summed_and_the_worst_of_the_bounds_counts(reliability: ModuleType) -> None:
    row = reliability.Row("kills", "kills", {"kills": 10}, {"broken": 0}, "more")
    good = reliability.judge(row, {"kills": {"a": kept(kills=4, broken=0), "b": kept(kills=6, broken=0)}})
    assert (good.values, good.met, good.commits) == ({"kills": 10, "broken": 0}, True, ["abc"])
    assert not reliability.judge(row, {"kills": {"a": kept(kills=9, broken=0)}}).met
    assert not reliability.judge(row, {"kills": {"a": kept(kills=90, broken=0), "b": kept(kills=1, broken=1)}}).met
    assert not reliability.judge(row, {"kills": {"a": kept(kills=90)}}).met
    assert not reliability.judge(row, {}).met


def test_delays_of_several_tests_are_put_together_before_the_quantile_is_taken(reliability: ModuleType) -> None:
    row = reliability.Row("deaths", "deaths", {"deaths": 200}, {"p99_ms": 50}, "more")
    tests = {"a": kept(deaths=100, delays_ms=[1.0] * 99 + [80.0]), "b": kept(deaths=100, delays_ms=[2.0] * 100)}
    result = reliability.judge(row, {"deaths": tests})
    assert result.met
    assert result.values["p99_ms"] == 2.0


def test_figures_come_from_the_report_of_a_run_and_replace_those_of_another_commit(
    reliability: ModuleType, tmp_path: Path
) -> None:
    from checks import figures

    report = tmp_path / "report.xml"
    value = json.dumps({"kills": 3}).replace('"', "&quot;")
    report.write_text(
        f'<testsuites><testsuite><testcase classname="c" name="t"><properties><property name="figure:kills" '
        f'value="{value}"/></properties></testcase></testsuite></testsuites>'
    )
    found = figures.read_report(report)
    assert found == {"kills": {"c.t": {"kills": 3}}}
    figures.FIGURES.parent.mkdir()
    figures.FIGURES.write_text(json.dumps({"kills": {"old": kept(kills=1)}}))
    figures.keep(found)
    assert [one["values"] for one in figures.load()["kills"].values()] == [{"kills": 3}]


def test_every_figure_that_a_test_hands_over_has_its_line(reliability: ModuleType) -> None:
    known = {row.figure for row in reliability.ROWS}
    handed = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        if path != Path(__file__)
        for name in re.findall(r"\bfigure\(\s*\"([^\"]+)\"", path.read_text())
    }
    assert handed
    assert handed <= known, f"not in tools/checks/reliability.py: {sorted(handed - known)}"
    commands = {"mutants"}  # measured by a command alone: too long for the suite
    assert handed | commands == known, f"nobody measures {sorted(known - handed - commands)}"
    for name in commands:
        assert f'figures.keep({{"{name}"' in (ROOT / "tools" / "checks" / f"{name}.py").read_text()
