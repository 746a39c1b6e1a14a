"""Options that name something missing are refused in the words of options, before a task starts. No Java is needed."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import shmq
from shmq.engine.arrow.outgoing import check_columns
from shmq.spark.named_queue import check_target
from shmq.spark.options import SinkOptions, SourceOptions
from shmq.spark.placement import batch_sink, batch_source, stream_sink, stream_source

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


@pytest.mark.parametrize(
    ("parse", "name", "text"),
    [
        (SourceOptions.parse, "stagettl", "the option stageTtl is of a write, and this is a read; leave it out"),
        (SinkOptions.parse, "maxrowsperbatch", "the option maxRowsPerBatch is of a read, and this is a write"),
        (SourceOptions.parse, "polms", "there is no option 'polms' of format shmq; did you mean pollMs?"),
        (
            SinkOptions.parse,
            "colour",
            "of format shmq; there are: caFile, commitTimeout, distribution, encryptionKeyFile",
        ),
    ],
)
def test_an_option_is_named_as_the_page_spells_it(
    broker: shmq.Broker, parse: Callable[[dict[str, str]], object], name: str, text: str
) -> None:
    """Spark hands all names on in lower case."""
    with pytest.raises(ValueError, match=re.escape(text)):
        parse(options(broker, **{name: "5"}))


@pytest.mark.parametrize("place", ["path", "uri"])
def test_truncate_goes_with_overwrite_alone(broker: shmq.Broker, place: str) -> None:
    given = {place: (broker.path or "") if place == "path" else "grpc://localhost:1", "queue": "orders"}
    with pytest.raises(ValueError, match=r'mode\("append"\) leaves the messages of queue .orders., and truncate=true'):
        batch_sink(given | {"truncate": "true"}, overwrite=False)
    with pytest.raises(ValueError, match=r'mode\("overwrite"\) would throw away'):
        batch_sink(given, overwrite=True)
    batch_sink(given, overwrite=False)
    batch_sink(given | {"truncate": "true"}, overwrite=True)


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint"])
def test_a_priority_is_any_whole_number(kind: str) -> None:
    check_columns({"body": "string", "priority": kind})


def test_what_was_read_and_cannot_be_written_is_told_with_the_columns_that_can(broker: shmq.Broker) -> None:
    types = dict.fromkeys(("queue", "position", "message_id", "priority", "headers"), "") | {"body": "binary"}
    told = r"column 'position', 'message_id' cannot be written.*write \.select\('priority', 'headers', 'body'\)"
    with pytest.raises(ValueError, match=told):
        check_columns(types)
    with pytest.raises(ValueError, match=r"leave the others out with select\(\), or make one body"):
        check_columns({"id": "int"})


@pytest.mark.parametrize(("column", "cast"), [("priority", "bigint"), ("ttl", "double"), ("group", "string")])
def test_a_null_without_a_type_is_told_with_its_cast(column: str, cast: str) -> None:
    with pytest.raises(ValueError, match=rf"column '{column}' is void; .* cast it: CAST\(NULL AS {cast}\)"):
        check_columns({"body": "string", column: "void"})


def test_a_table_of_the_catalog_is_told_what_spark_does_with_its_options() -> None:
    """As Spark hands them on: of CREATE TABLE all that there is, of its use nothing."""
    made = {"path": "file:/tmp/b", "queue": "q", "option.queue": "q", "location": "file:/tmp/b", "owner": "root"}
    for given, text in ((made, "CREATE TABLE with options makes no table"), ({}, "the option queue is missing")):
        with pytest.raises(ValueError, match=rf"{text}.*CREATE TEMPORARY VIEW name USING shmq OPTIONS"):
            SourceOptions.parse(given)
    with pytest.raises(ValueError, match=r"the option path is missing; .*FROM name WITH"):
        SinkOptions.parse({})


@pytest.mark.parametrize("kind", ["decimal(3,0)", "float", "double", "string", "boolean"])
def test_a_priority_of_another_type_is_refused(kind: str) -> None:
    text = f"column 'priority' is {kind}; tinyint or smallint or int or bigint is expected: cast it"
    with pytest.raises(ValueError, match=re.escape(text)):
        check_columns({"body": "string", "priority": kind})
