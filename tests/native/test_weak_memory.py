"""The core's protocols in the simulator of weak memory (native/weak), and orders taken away that must be missed."""

import subprocess
from collections.abc import Callable

import pytest

from builds.native_build import ROOT, WEAK, built
from tests.native.c_programs import said_by
from tests.support.size import sized

SCENARIOS = sorted(
    path.stem for path in (ROOT / "native" / "weak" / "scenarios").glob("*.c") if path.stem != "small_ring"
)
SEEDS = sized(500, 100_000)  # runs of each scenario
FAULT_SEEDS = sized(1500, 20_000)  # runs for each order that is taken away; fixed seeds, so found is found
LITMUS_RUNS = 3000
RUN_SECONDS = sized(1500, 3000)


@pytest.fixture(autouse=True)
def _gcc(tool: Callable[[str], str]) -> None:
    """The simulator reads what gcc says about plain accesses."""
    tool("gcc")


def weak(*arguments: str | int) -> subprocess.CompletedProcess[str]:
    return said_by([built(WEAK, targets=("weak",)) / "weak", *map(str, arguments)], RUN_SECONDS)


@pytest.mark.timeout(4000)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_protocol_holds_under_weak_memory(scenario: str, seed: int) -> None:
    result = weak("--scenario", scenario, "--first", seed, "--seeds", SEEDS)
    assert result.returncode == 0, result.stdout
    assert f"{scenario:10} {SEEDS} runs" in result.stdout, result.stdout


@pytest.mark.timeout(1800)
def test_the_simulator_shows_what_c11_allows_and_nothing_that_it_forbids() -> None:
    result = weak("--seeds", LITMUS_RUNS, "--litmus")
    assert result.returncode == 0, result.stdout
    assert result.stdout.count("forbidden, seen 0") >= 8, result.stdout
    assert "WRONG" not in result.stdout


@pytest.mark.timeout(4000)
def test_an_order_that_is_taken_away_is_missed_or_has_its_reason() -> None:
    """Each line without a reason must be found; one with a reason must not, else the reason is wrong."""
    result = weak("--seeds", FAULT_SEEDS, "--faults")
    assert result.returncode == 0, "\n".join(line for line in result.stdout.splitlines() if line.startswith("!!"))
    found = [line for line in result.stdout.splitlines() if "not noticed" not in line]
    assert len(found) >= 20, result.stdout


def test_a_scenario_that_does_not_exist_is_refused() -> None:
    assert weak("--scenario", "nonsense").returncode == 2
