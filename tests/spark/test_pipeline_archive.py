"""Out of queues into Parquet and back, with a real Spark: everything once, and as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shmq
from shmq.engine.claims.claim import identity_of
from shmq.spark.pipelines.archive import Place, read_archive, start_archive
from shmq.spark.pipelines.replay import Choice, replay
from shmq.spark.pipelines.replay_ledger import Ledger
from shmq.spark.pipelines.statistics import archived_entries, collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 300  # of one query, on a busy machine
NAMES = ["orders", "orders.dead", "7"]


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="64MiB") as opened:
        yield opened


def archived(spark: SparkSession, broker: shmq.Broker, folder: Path) -> Path:
    """All that is in the queues now."""
    place = Place(folder, broker.queue("orders"), "archive")
    assert start_archive(spark, broker.path or "", NAMES, place, "archive").awaitTermination(SECONDS)
    return place.folder


def put_back(spark: SparkSession, folder: Path, queue: shmq.Queue[Any], **choice: Any) -> int:
    ledger = Ledger(folder, identity_of(queue), choice.get("where", ""))
    priorities = queue.options["priorities"] > 1
    path = queue.broker.path or ""
    with ledger.turn():
        return replay(spark, str(folder), Choice(**choice), ledger, path, queue.name, priorities=priorities)


def test_an_archive_has_all_of_it_once_and_gives_it_back_once(
    spark: SparkSession, broker: shmq.Broker, tmp_path: Path
) -> None:
    orders = broker.queue("orders", priorities=3, groups="shared")
    folder = tmp_path / "archive"
    for n in range(20):
        orders.put({"n": n}, headers={"n": n, "kind": "png"}, priority=n % 3 * 4, group=f"g{n % 2}")
    with orders.consumer(selector="n = 7") as consumer:
        consumer.receive().reject("no frame")
    broker.queue("7").put_many([b"octets", "text"])
    place = archived(spark, broker, folder)
    assert sum(broker.queue(name).qsize() for name in NAMES) == 0
    orders.put("late")
    archived(spark, broker, folder)  # goes on where the first one ended
    days = sorted(part.name for part in place.glob("day=*"))
    assert sorted({part.name for part in place.glob("day=*/queue=*")}) == [
        "queue=7",
        "queue=orders",
        "queue=orders.dead",
    ]

    found = read_archive(spark, folder)
    assert (found.count(), found.select("message_id").distinct().count()) == (23, 23)
    (dead,) = found.where("death IS NOT NULL").select("queue", "death.queue", "death.error").collect()
    assert tuple(dead) == ("orders.dead", "orders", "no frame")
    statistics = collected(archived_entries(spark, str(folder)))
    assert [(row["queue"], row["waiting"], row["left"], row["dead"]) for row in statistics.queues] == [
        ("7", 0, 2, 0),
        ("orders", 0, 20, 0),
        ("orders.dead", 0, 1, 1),
    ]
    assert statistics.queues[1]["longest"] > 0

    again = broker.queue("again", priorities=3, groups="shared")
    day = days[0].removeprefix("day=")
    assert put_back(spark, folder, again, days=[day], queues=["orders"]) in range(1, 21)
    assert put_back(spark, folder, again, queues=["orders", "orders.dead"]) in range(1, 21)
    assert put_back(spark, folder, again, queues=["orders"]) == 0
    back = list(again.browse())
    assert len(back) == 21
    last = next(message for message in back if message.body == {"n": 19})
    assert (last.priority, last.group, dict(last.headers)) == (4, "g1", {"n": "19", "kind": "png"})
    assert last.content_type == "application/json"
    assert [message.body["n"] for message in back if message.priority == 0 and message.body != {"n": 7}] == [
        n for n in range(20) if n % 3 == 0
    ]
    plain = broker.queue("plain")
    assert put_back(spark, folder, plain, queues=["7"], where="content_type LIKE 'text%'") == 1
    assert plain.get() == "text"


def test_a_replay_that_died_before_it_knew_is_not_put_twice(
    spark: SparkSession, broker: shmq.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the publication of the rows and the note in the archive."""
    for name in NAMES:
        broker.queue(name)
    broker.queue("7").put_many(str(n) for n in range(5))
    archived(spark, broker, tmp_path)
    again = broker.queue("again")

    def killed(ledger: Ledger, entry: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            put_back(spark, tmp_path, again)
    assert again.qsize() == 5
    put_back(spark, tmp_path, again)
    assert again.qsize() == 5
