"""Lost data is told: claims that were purged, deleted or made anew, stages that are not as they were written."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.engine.arrow.outgoing import Outgoing
from shmq.spark.data_lost import DataLost
from shmq.spark.options import SinkOptions, SourceOptions
from shmq.spark.publication import Publication, undecided
from shmq.spark.sink import StreamSink
from shmq.spark.stage import StageWriter
from shmq.spark.stream_source import Limit, StreamSource
from shmq.spark.subscription import claims_name

CLAIMS = claims_name("orders", "etl")
Offsets = tuple[StreamSource, dict[str, Any], dict[str, Any]]


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="16MiB") as opened:
        yield opened


def planner(broker: shmq.Broker, **options: str) -> StreamSource:
    given = {"path": broker.path or "", "queue": "orders", "subscription": "etl", "pollMs": "0"}
    return StreamSource(SourceOptions.parse(given | options))


def planned(broker: shmq.Broker, **options: str) -> Offsets:
    """A batch of ten rows that Spark knows, and has not read."""
    broker.queue("orders").put_many([b"row"] * 10)
    source = planner(broker, **options)
    start = source.initialOffset()
    end = source.latestOffset(start, Limit())
    assert end["queues"]["orders"]["rows"] == 10
    return source, start, end


def read(source: StreamSource, start: dict[str, Any], end: dict[str, Any], broker: shmq.Broker) -> int:
    return sum(1 for part in source.partitions(start, end) for _ in source.entries(broker, part))


def test_a_planned_range_is_read_again_and_again(broker: shmq.Broker) -> None:
    source, start, end = planned(broker)
    for _ in range(3):
        assert read(source, start, end, broker) == 10
    source.commit(end)
    with pytest.raises(DataLost, match="0 of 10"):
        read(source, start, end, broker)
    source.close()


@pytest.mark.parametrize("selector", [None, "JMSPriority >= 0"])
def test_claims_that_somebody_has_purged_are_told(broker: shmq.Broker, selector: str | None) -> None:
    source, start, end = planned(broker)
    broker.queue(CLAIMS).purge(selector=selector)
    with pytest.raises(DataLost, match=r"0 of 10.*failOnDataLoss=false"):
        read(source, start, end, broker)
    source.close()


def test_one_claim_that_is_missing_is_told(broker: shmq.Broker) -> None:
    source, start, end = planned(broker)
    assert broker.queue(CLAIMS).move(broker.queue("elsewhere"), limit=1) == 1
    with pytest.raises(DataLost, match="9 of 10"):
        read(source, start, end, broker)
    source.close()


@pytest.mark.parametrize("made_anew", [False, True])
def test_claims_whose_queue_was_deleted_are_told(broker: shmq.Broker, made_anew: bool) -> None:
    source, start, end = planned(broker)
    source.close()
    broker.queue(CLAIMS).delete()
    if made_anew:
        broker.queue(CLAIMS, max_attempts=0, max_deaths=0).put_many([b"other"] * 10)
    again = planner(broker)
    with pytest.raises(DataLost, match="was made anew since the checkpoint"):
        again.partitions(start, end)
    with pytest.raises(DataLost, match="was made anew"):
        again.latestOffset(end, Limit())
    again.close()


def test_without_failing_it_goes_on_with_what_there_is(broker: shmq.Broker) -> None:
    source, start, end = planned(broker, failOnDataLoss="false")
    assert broker.queue(CLAIMS).move(broker.queue("elsewhere"), limit=4) == 4
    assert read(source, start, end, broker) == 6
    source.close()
    broker.queue(CLAIMS).delete()
    again = planner(broker, failOnDataLoss="false")
    assert read(again, start, end, broker) == 0
    broker.queue("orders").put_many([b"new"] * 3)
    later = again.latestOffset(end, Limit())
    assert read(again, end, later, broker) == 3
    again.commit(end)  # of the old queue: it discards nothing
    assert broker.queue(CLAIMS).qsize() == 3
    again.close()


def test_a_deleted_checkpoint_begins_with_what_is_claimed(broker: shmq.Broker) -> None:
    source, _, _ = planned(broker)
    source.close()
    again = planner(broker)
    start = again.initialOffset()
    assert start == again.initialOffset()
    assert read(again, start, again.latestOffset(start, Limit()), broker) == 10
    again.close()


def test_the_checkpoint_of_other_queues_is_refused(broker: shmq.Broker) -> None:
    source, start, _ = planned(broker)
    source.close()
    broker.queue("returns")
    other = planner(broker, queue="returns")
    with pytest.raises(ValueError, match="orders is not among those that are read now"):
        other.latestOffset(start, Limit())
    other.close()


def test_a_queue_that_is_added_begins_at_its_beginning(broker: shmq.Broker) -> None:
    source, _, end = planned(broker)
    source.commit(end)
    source.close()
    broker.queue("returns").put_many([b"back"] * 2)
    both = planner(broker, queue="orders,returns")
    later = both.latestOffset(end, Limit())
    assert read(both, end, later, broker) == 2
    both.close()


def test_nothing_new_is_the_same_text(broker: shmq.Broker) -> None:
    source, _, end = planned(broker)
    assert json.dumps(source.latestOffset(end, Limit())) == json.dumps(end)
    assert source.reportLatestOffset()["queues"]["orders"]["position"] == end["queues"]["orders"]["position"]
    source.close()


# ---- stages ----------------------------------------------------------------------------------------------------------


def staged(broker: shmq.Broker) -> tuple[StreamSink, Any]:
    sink = StreamSink(SinkOptions.parse({"path": broker.path or "", "queue": "results"}))
    return sink, sink.stage([Outgoing(b"row", {}, None)] * 5, "query")


def test_a_stage_that_is_gone_fails_the_batch(broker: shmq.Broker) -> None:
    sink, message = staged(broker)
    broker.queue(message.stages[0].queue).delete()
    with pytest.raises(DataLost, match="it is gone; nothing of this batch is published"):
        sink.commit([message], 0)
    assert broker.queue("results").qsize() == 0


def test_a_stage_that_was_made_anew_fails_the_batch(broker: shmq.Broker) -> None:
    sink, message = staged(broker)
    broker.queue(message.stages[0].queue).delete()
    broker.queue(message.stages[0].queue).put_many([b"row"] * 5)
    with pytest.raises(DataLost, match="it was made anew"):
        sink.commit([message], 0)


def test_a_stage_into_which_somebody_has_put_fails_the_batch(broker: shmq.Broker) -> None:
    sink, message = staged(broker)
    broker.queue(message.stages[0].queue).put(b"sixth")
    with pytest.raises(DataLost, match="5 rows were written, it has had 6"):
        sink.commit([message], 0)


def test_a_queue_of_somebody_else_is_no_stage(broker: shmq.Broker) -> None:
    """A publisher deletes stages that nobody needs, and no queue that has only such a name."""
    for name in ("results.stage.one", "results.stage.stage.0123456789abcdef"):
        broker.queue(name).put("mine")
    sink, message = staged(broker)
    sink.commit([message], 0)
    assert undecided(broker.queue("results")) == []
    assert broker.queue("results.stage.one").get(timeout=0) == "mine"
    assert broker.queue("results.stage.stage.0123456789abcdef").get(timeout=0) == "mine"


def test_an_abort_drops_what_is_not_decided(broker: shmq.Broker) -> None:
    sink, message = staged(broker)
    names = {queue.name for queue in broker.queues()}
    sink.abort([None, message], 0)
    assert names - {queue.name for queue in broker.queues()} == {message.stages[0].queue}
    sink.abort([None, message], 0)


def test_an_abort_leaves_what_is_decided(broker: shmq.Broker) -> None:
    results = broker.queue("results", maxsize=1)
    results.put(b"in the way")
    sink, message = staged(broker)
    with pytest.raises(shmq.Full):
        Publication(results, 0.0).publish("query", 0, message.stages)
    sink.abort([message], 0)
    assert results.get() == b"in the way"
    for _ in range(5):
        try:
            Publication(results, 0.0).finish()
        except shmq.Full:
            pass
        assert results.get(timeout=0) == b"row"


@pytest.mark.parametrize(
    ("disk", "ballast", "several"),
    [(0, 0, True), (1 << 30, 0, True), (1 << 30, 9, False)],
    ids=["memory", "disk", "disk-and-half-of-memory-used"],
)
def test_a_task_with_more_rows_than_a_ring_holds_has_several_stages_or_one_on_disk(
    broker_dir: Path, disk: int, ballast: int, several: bool
) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk=disk) as broker:
        broker.queue("ballast").put_many([bytes(1 << 20)] * ballast)
        results = broker.queue("results", maxsize=6000)
        stages = StageWriter(results, 60.0).write(Outgoing(b"%d" % n, {}, None) for n in range(5000))
        assert (len(stages) > 1) == several
        assert any(broker.queue(stage.queue).statistics().disk_bytes for stage in stages) == (not several)
        assert sum(stage.count for stage in stages) == 5000
        assert Publication(results, 0.0).publish("query", 0, stages)
        assert [results.get(timeout=0) for _ in range(5000)] == [b"%d" % n for n in range(5000)]


def test_rows_with_times_are_published_with_what_is_left_of_them(broker: shmq.Broker) -> None:
    results = broker.queue("results", priorities=2, groups="shared")
    later = Outgoing("later", {"delay": 3600.0, "group": "a", "priority": 9, "headers": {"k": "v"}}, None)
    mortal = Outgoing("mortal", {"ttl": 3600}, "text/x-one")
    Publication(results, 0.0).publish("query", 0, StageWriter(results, 60.0).write([later, mortal]))
    assert results.statistics().delayed == 1
    first, second = results.browse()
    assert (first.body, first.priority, first.group, dict(first.headers)) == ("later", 9, "a", {"k": "v"})
    assert second.content_type == "text/x-one"
    assert second.expires_at is not None


def test_a_row_that_cannot_be_put_leaves_no_stage(broker: shmq.Broker) -> None:
    sink, message = staged(broker)
    sink.abort([message], 0)
    names = {queue.name for queue in broker.queues()}
    for bad in ({"priority": 3}, {"group": "a"}, {"ttl": -1}, {"headers": {"": "x"}}):
        with pytest.raises((ValueError, TypeError)):
            sink.stage([Outgoing(b"row", {}, None), Outgoing(b"row", bad, None)], "query")
    assert {queue.name for queue in broker.queues()} == names
