"""Each test has an anonymous broker of its own, which is gone when it ends."""

import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from shmq.mp import get_context, process_broker
from tests.mp.children import ROOMY


@pytest.fixture(autouse=True)
def _roomy(own_process_broker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_broker, "BrokerSettings", ROOMY)


@pytest.fixture(params=["fork", "spawn", "forkserver"])
def ctx(request: pytest.FixtureRequest) -> Any:
    """A context of each start method, whose queues are ours."""
    return get_context(request.param)


@pytest.fixture
def start() -> Iterator[Callable[..., BaseProcess]]:
    """start(ctx, function, *arguments): a child, which does not outlive the test."""
    children: list[BaseProcess] = []

    def run(ctx: Any, target: Callable[..., object], *args: object) -> BaseProcess:
        child: BaseProcess = ctx.Process(target=target, args=args)
        child.start()
        children.append(child)
        return child

    yield run
    for child in children:
        if child.is_alive():
            child.kill()
        child.join(30)


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], None]:
    """Waits until a condition holds that another process brings about."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, "it did not come about within 30 s"
            time.sleep(0.001)

    return wait
