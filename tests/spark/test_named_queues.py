"""What options name and what is not there is said in the words of options, before a task starts. No Java is needed."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmq
from shmq.spark.named_queue import check_target
from shmq.spark.options import SinkOptions, SourceOptions
from shmq.spark.placement import batch_source, stream_sink, stream_source

ALL = ("body",)


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="16MiB") as opened:
        opened.queue("orders")
        yield opened


def options(broker: shmq.Broker, **more: str) -> dict[str, str]:
    return {"path": broker.path or "", "queue": "orders"} | more


def test_a_queue_that_is_not_there_is_told_with_the_one_that_is_meant(broker: shmq.Broker) -> None:
    with pytest.raises(shmq.NotFound, match=r"there is no queue 'ordres' in the broker .*; did you mean 'orders'"):
        batch_source(options(broker, queue="ordres"), ALL).partitions()
    with pytest.raises(shmq.NotFound, match="did you mean 'orders'"):
        stream_source(options(broker, queue="ordres", subscription="etl"), ALL).initialOffset()
    with pytest.raises(shmq.NotFound, match=r"; check the option queue; shmq ls"):
        batch_source(options(broker, queue="xyz"), ALL).partitions()
    assert [queue.name for queue in broker.queues()] == ["orders"]


def test_a_broker_that_is_not_there_is_told_with_the_command_that_makes_it(tmp_path: Path) -> None:
    given = {"path": str(tmp_path / "none"), "queue": "orders"}
    for call in (
        batch_source(given, ALL).partitions,
        stream_source(given | {"subscription": "etl"}, ALL).initialOffset,
        lambda: check_target(SinkOptions.parse(given), ("body", "group")),
    ):
        with pytest.raises(shmq.BrokerNotFound, match=rf"make the broker first: shmq -d {tmp_path}/none init"):
            call()


def test_a_malformed_selector_is_told_where_it_is_given(broker: shmq.Broker) -> None:
    with pytest.raises(ValueError, match="option selector: "):
        SourceOptions.parse(options(broker, selector="n >> 50 AND"))


@pytest.mark.parametrize("name", ["idempotencyKey", "truncate"])
def test_a_stream_takes_no_option_of_a_batch_write(broker: shmq.Broker, name: str) -> None:
    with pytest.raises(ValueError, match=f"the option {name} is of a batch write"):
        stream_sink(options(broker, **{name: "true"}))


@pytest.mark.parametrize("columns", [("body", "priority"), ("group", "body"), ("body", "priority", "group")])
def test_a_queue_with_priorities_or_groups_is_made_before_it_is_written(
    broker: shmq.Broker, columns: tuple[str, ...]
) -> None:
    """By the command that the error names."""
    target = SinkOptions.parse(options(broker, queue="results"))
    with pytest.raises(ValueError, match="make it first: ") as refused:
        check_target(target, columns)
    assert [queue.name for queue in broker.queues()] == ["orders"]
    command = shlex.split(str(refused.value).partition("make it first: ")[2])
    assert command[0] == "shmq"
    subprocess.run([sys.executable, "-m", *command], check=True, timeout=600)
    check_target(target, columns)
    made = broker.queue("results").options
    assert (made["priorities"] > 1, made["groups"] is not None) == ("priority" in columns, "group" in columns)


def test_a_frame_without_such_columns_needs_no_queue(broker: shmq.Broker) -> None:
    check_target(SinkOptions.parse(options(broker, queue="results")), ALL)
