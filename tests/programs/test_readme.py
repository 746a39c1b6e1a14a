"""The programs of README.md are saved, started as it shows them, and print what stands there."""

from pathlib import Path

import pytest

from tests.engine.child import Child, eventually
from tests.programs.test_shown_output import Shown, plain, prints_the_same_twice, shown

PRODUCER, WORKER, *OTHERS = shown("README.md")


def test_the_readme_shows_what_it_promises_to_show() -> None:
    assert [program.name for program in (PRODUCER, WORKER, *OTHERS)] == ["", "worker.py", "squares.py", "swap.py"]


@pytest.mark.parametrize("worker_first", [False, True])
def test_an_order_reaches_a_worker(tmp_path: Path, worker_first: bool) -> None:
    """And those of a second run of the producer, too."""
    if worker_first:
        with Child(WORKER.text, folder=tmp_path) as worker:
            eventually((tmp_path / "shop.shmq" / "segment").exists, "the broker")
            worker.sleeps()
            for _ in range(2):
                produce(tmp_path)
                assert f"{worker.line()}\n" == WORKER.output
    else:
        produce(tmp_path)
        with Child(WORKER.text, folder=tmp_path) as worker:
            assert f"{worker.line()}\n" == WORKER.output


def produce(folder: Path) -> None:
    with Child(PRODUCER.text, folder=folder) as producer:
        producer.end()


@pytest.mark.parametrize("program", OTHERS, ids=[program.name for program in OTHERS])
def test_a_program_of_the_readme_prints_what_stands_there(tmp_path: Path, program: Shown) -> None:
    prints_the_same_twice(tmp_path, program, without_luck)


def without_luck(text: str) -> list[str]:
    """On a busy machine others have done all jobs before the pool hears of the death: nobody is replaced then."""
    return plain(text.replace("goes back, it is replaced", "goes back"))
