"""The flow of a queue to disk as a model: random schedules hold no fault, and each seeded fault is found.

The package `pump` is the model, `docs/protocol-flow.md` its protocol. A schedule follows from its plan and seed.
`python -m tests.protocols.pump --fault NAME 100000` finds a seed; SHMQ_FULL=1 runs more schedules.
"""

import os
import re
from pathlib import Path

import pytest

from tests.protocols.pump.faults import FAULTS, PLANS
from tests.protocols.pump.schedule import Schedule
from tests.protocols.pump.words import Fault

MODEL = Path(__file__).parent / "pump"
SCHEDULES = 5000 if os.environ.get("SHMQ_FULL") == "1" else 150


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("plan", PLANS)
def test_random_schedules_of_the_pump_break_no_promise(plan: str, seed: int) -> None:
    """Shows S144, S182, G5."""
    counts: dict[str, int] = {}
    for number in range(seed, seed + SCHEDULES):
        try:
            seen = Schedule(PLANS[plan], number).run()
        except Fault as found:
            pytest.fail(f"plan {plan}, seed {number}: {found}")
        for what, many in seen.items():
            counts[what] = counts.get(what, 0) + many
    assert {"flushed", "pulled", "left", "taken"} <= counts.keys()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_seeded_fault_of_the_pump_is_found(fault: str) -> None:
    seeded = FAULTS[fault]
    plan = PLANS[seeded.plan]
    with pytest.raises(Fault):
        Schedule(plan, seeded.seed, fault).run()
    Schedule(plan, seeded.seed).run()


def test_each_fault_that_the_model_of_the_pump_can_make_is_seeded() -> None:
    asked = {
        name
        for path in MODEL.glob("*.py")
        for call in re.findall(r"is_fault\(([^)]*)\)", path.read_text())
        for name in re.findall(r'"(\w+)"', call)
    }
    assert asked == set(FAULTS)
