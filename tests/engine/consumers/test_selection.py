"""Selectors on messages: what browse shows and purge throws away."""

import threading
from typing import Any

import pytest

import shmq

Queue = shmq.Queue[Any]


@pytest.fixture
def images(broker: shmq.Broker) -> Queue:
    queue = broker.queue("images")
    for n in range(6):
        queue.put(n, headers={"kind": "png" if n % 2 else "jpeg", "width": n * 1000, "note": None, "raw": b"x"})
    return queue


def bodies(queue: Queue, selector: str | None) -> list[Any]:
    return [m.body for m in queue.browse(selector=selector)]


def test_browse_shows_what_is_selected_in_order_and_takes_nothing(images: Queue) -> None:
    """Shows S5, S23, S80."""
    assert bodies(images, "kind = 'png' AND width > 1000") == [3, 5]
    assert bodies(images, "note IS NULL AND raw IS NOT NULL AND missing IS NULL") == [0, 1, 2, 3, 4, 5]
    assert bodies(images, "raw = 'x'") == []
    assert bodies(images, None) == [0, 1, 2, 3, 4, 5]
    assert images.qsize() == 6


def test_a_message_has_fields_beside_its_headers(images: Queue) -> None:
    first = next(images.browse())
    assert bodies(images, f"JMSMessageID = {first.id}") == [0]
    stamp = int(first.enqueued_at * 1000)
    assert 0 in bodies(images, f"JMSTimestamp BETWEEN {stamp} AND {stamp + 60_000}")
    assert bodies(images, "JMSPriority = 4 AND JMSXGroupID IS NULL AND NOT JMSRedelivered") == [0, 1, 2, 3, 4, 5]
    images.receive().retry()
    assert bodies(images, "JMSRedelivered AND JMSXDeliveryCount = 2") == [0]


def test_following_browsers_wait_for_what_is_selected(images: Queue) -> None:
    seen: list[Any] = []
    follower = images.browse(follow=True, selector="kind = 'png'")
    thread = threading.Thread(target=lambda: seen.extend(m.body for m in follower))
    thread.start()
    images.put("late jpeg", headers={"kind": "jpeg"})
    images.put("late png", headers={"kind": "png"})
    images.shutdown()
    thread.join(120)
    assert seen == [1, 3, 5, "late png"]


def test_purge_throws_away_what_is_selected_and_ready(images: Queue) -> None:
    """Shows S86, S87."""
    held = images.receive()  # 0, a jpeg
    assert images.purge(selector="kind = 'jpeg'") == 2
    assert images.purge(selector="kind = 'jpeg'") == 0
    assert bodies(images, None) == [0, 1, 3, 5]
    held.ack()
    assert [images.get() for _ in range(3)] == [1, 3, 5]
    images.join(timeout=60)
    statistics = images.statistics()
    assert (statistics.put, statistics.acked) == (6, 4)


def test_purge_by_selector_beside_takers_settles_each_message_once(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs")
    queue.put_many(range(3000), headers={"odd": True})
    taken: list[int] = []

    def take() -> None:
        while True:
            try:
                taken.append(queue.get(timeout=0))
            except shmq.Empty:
                return

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    purged = queue.purge(selector="odd")
    for thread in threads:
        thread.join(120)
    assert len(taken) == len(set(taken))
    assert len(taken) + purged == 3000
    assert queue.qsize() == 0
    queue.join(timeout=60)


@pytest.mark.in_hand
@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_selector_is_none(images: Queue, empty: str) -> None:
    everything = bodies(images, None)
    assert bodies(images, empty) == everything
    with images.consumer(selector=empty) as consumer:
        assert [m.body for m in consumer.receive_many(10, timeout=0)] == everything
    with images.broker.consumer(images, images.broker.queue("others"), selector=empty) as consumer:
        assert [m.body for m in consumer.receive_many(10, timeout=0)] == everything
    elsewhere = images.broker.queue("elsewhere")
    assert images.move(elsewhere, selector=empty) == len(everything)


def test_an_empty_selector_purges_nothing(images: Queue) -> None:
    everything = bodies(images, None)
    with pytest.raises(shmq.SelectorError, match="the selector is empty; leave it out to purge everything"):
        images.purge(selector="")
    assert bodies(images, None) == everything


def test_literals_of_java_select(images: Queue) -> None:
    """Exact ones may be hexadecimal, octal or long, approximate ones float or double."""
    for width in range(0, 6000, 1000):
        for literal in (f"{width:#x}", f"0{width:o}", f"{width}L", f"{width}.0f", f"{width}d"):
            selected = [m.body for m in images.browse(selector=f"width = {literal}")]
            assert selected == bodies(images, f"width = {width}") != []


def test_a_malformed_selector_is_an_error_at_once_and_changes_nothing(images: Queue) -> None:
    with pytest.raises(shmq.SelectorError, match="at character 8"):
        images.browse(selector="width >")
    with pytest.raises(shmq.SelectorError, match="at character 1"):
        images.purge(selector="AND")
    with pytest.raises(TypeError):
        images.browse(selector=5)  # type: ignore[arg-type]
    assert images.qsize() == 6
