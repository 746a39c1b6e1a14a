"""The machine of the model: real processes that use a queue at random."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RULE_MARKER, run_state_machine_as_test

from shmq.options.stage import NOT_BUILT
from tests.model.entry import FAR
from tests.model.machine import QueueMachine
from tests.model.player import Actor
from tests.model.queue_model import QueueModel
from tests.model.world import World
from tests.support.size import sized

STEPS = 40
EXAMPLES = sized(16, 160)
SMALL, LARGE = 60, 5000  # most bytes of a body: in its slot, or in a block

KINDS: Mapping[str, tuple[Mapping[str, Any], int]] = {
    "plain": ({"maxsize": 1000}, SMALL),
    "blocks": ({"maxsize": 1000}, LARGE),
    "strict": ({"maxsize": 1000, "max_attempts": 1, "max_deaths": 1}, SMALL),
    "priorities": ({"maxsize": 1000, "priorities": 3}, SMALL),
    "groups": ({"maxsize": 1000, "groups": "shared", "priorities": 2}, SMALL),
    "sticky groups": ({"maxsize": 1000, "groups": "sticky"}, SMALL),
    "small": ({"maxsize": 5, "max_bytes": 6000}, LARGE),
    "dropping": ({"maxsize": 4, "overflow": "drop_oldest", "priorities": 2}, LARGE),
    "reserve": ({"maxsize": 1000, "live_consumers": 1, "temporary": True, "slot_size": 128, "checksum": False}, LARGE),
    "flowing": ({"maxsize": 1000, "max_memory": 1}, SMALL),
    "flowing blocks": ({"maxsize": 1000, "max_memory": 6000, "priorities": 3}, LARGE),
    "flowing groups": ({"maxsize": 1000, "max_memory": 1, "groups": "shared", "priorities": 2}, SMALL),
    "flowing, dropping": ({"maxsize": 4, "max_memory": 1, "overflow": "drop_oldest", "priorities": 2}, LARGE),
    "flowing sticky": ({"maxsize": 1000, "max_memory": 1, "groups": "sticky"}, SMALL),
    "flowing reserve": ({"maxsize": 1000, "max_memory": 1, "live_consumers": 1, "temporary": True}, LARGE),
    "flowing levels": ({"maxsize": 1000, "max_memory": 1, "priorities": 10, "live_consumers": 2}, SMALL),
    "flowing strict": (
        {"maxsize": 1000, "max_memory": 1, "max_attempts": 1, "max_deaths": 1, "priorities": 2, "groups": "shared"},
        SMALL,
    ),
    "flowing letters": (
        {"maxsize": 1000, "max_memory": 1, "dead_letter": "", "max_attempts": 2, "lease": FAR, "max_ttl": FAR},
        SMALL,
    ),
    "letters": ({"maxsize": 1000, "dead_letter": "", "max_attempts": 2, "lease": FAR, "max_ttl": FAR}, SMALL),
}
BUILT = {name: kind for name, kind in KINDS.items() if not NOT_BUILT & set(kind[0])}

Run = Callable[..., None]


def rules() -> set[str]:
    """Names of all rules."""
    return {name for name, function in inspect.getmembers(QueueMachine) if hasattr(function, RULE_MARKER)}


@pytest.fixture
def run(broker_dir: Path, seed: int) -> Iterator[Run]:
    """run(kind, make=..., model=..., steps=..., **settings): one test of the machine, or of some of its rules."""
    worlds: list[World] = []

    def run_once(
        kind: str, make: type[Actor] = Actor, model: type[QueueModel] = QueueModel, steps: Collection[str] = (),
        **changed: Any,
    ) -> None:  # fmt: skip
        world = World(broker_dir, *BUILT[kind], make, model)
        worlds.append(world)
        left_out = dict.fromkeys(rules() - set(steps or rules()))
        machine = hypothesis.seed(seed)(type("Machine", (QueueMachine,), {"world": world, **left_out}))
        chosen: dict[str, Any] = {
            "max_examples": EXAMPLES, "stateful_step_count": STEPS, "deadline": None, "database": None,
            "derandomize": False, "suppress_health_check": list(HealthCheck), **changed,
        }  # fmt: skip
        run_state_machine_as_test(machine, settings=settings(**chosen))
        world.close(in_peace=True)

    yield run_once
    for world in worlds:
        world.close(in_peace=False)
