"""Moving messages from one queue to another: in order, within limits, each one in one step."""

import random
import time
from typing import Any

import pytest

import shmq


def bodies(queue: shmq.Queue[Any]) -> list[Any]:
    return [m.body for m in queue.browse()]


@pytest.mark.parametrize("size", [3, 100_000])
def test_messages_are_moved_in_order_with_headers_and_content(broker: shmq.Broker, size: int) -> None:
    here, there = broker.queue("here"), broker.queue("there")
    sent = ["t" * size, b"b" * size, {"n": [1] * size}]
    for n, body in enumerate(sent):
        here.put(body, headers={"n": n})
    there.put("first")
    assert here.move(there) == 3
    assert bodies(here) == []
    moved = list(there.browse())
    assert [m.body for m in moved] == ["first", *sent]
    assert [dict(m.headers) for m in moved[1:]] == [{"n": n} for n in range(3)]
    assert (here.statistics().unsettled, there.statistics().ready) == (0, 4)
    assert broker.statistics().processes[0].unsettled == 0


def test_dead_letters_live_again_when_they_are_sent_back(broker: shmq.Broker) -> None:
    orders = broker.queue("orders", max_attempts=2, priorities=10)
    orders.put({"id": 7}, headers={"source": "web"}, priority=9)
    orders.put({"id": 8}, priority=2)
    for _ in range(2):
        for m in orders.receive_many(2, timeout=0):
            m.retry("no carrier")
    dead = broker.queue("orders.dead")
    assert [m.death.reason if m.death else None for m in dead.browse()] == ["max_attempts"] * 2
    assert dead.move(orders) == 2
    assert dead.qsize() == 0
    first, second = orders.receive_many(2, timeout=0)
    assert (first.body, dict(first.headers), first.priority) == ({"id": 7}, {"source": "web"}, 9)
    assert (second.body, second.priority) == ({"id": 8}, 2)
    for m in (first, second):
        assert (m.death, m.delivery_count, m.redelivered) == (None, 1, False)
        m.ack()


@pytest.mark.parametrize("back", ["release", "retry", "delay", "closed"])
@pytest.mark.parametrize("laps", [0, 1, 3])
def test_a_mover_that_has_passed_what_is_held_takes_it_when_it_comes_back(
    broker: shmq.Broker, back: str, laps: int
) -> None:
    """Also behind what has gone meanwhile, and after the ring went round."""
    here, there = broker.queue("here", maxsize=64), broker.queue("there")
    here.put_many(range(40))
    consumer = here.consumer()
    held = consumer.receive_many(20, timeout=0)
    assert here.move(there, limit=5) == 5
    assert here.move(there, limit=5) == 5
    for lap in range(3 * laps):
        here.put_many([100 + lap] * 20)
        assert here.move(there) == 20 + 10 * (lap == 0)
    there.purge()
    if back == "closed":
        consumer.close()
    else:
        held[7].retry(delay=60) if back == "delay" else getattr(held[7], back)()
    assert here.move(there) == (20 if back == "closed" else 1) + 10 * (laps == 0)
    assert next(m.body for m in there.browse()) == (0 if back == "closed" else 7)
    assert here.move(there) == 0


def test_a_limit_and_a_selector_choose(broker: shmq.Broker) -> None:
    here, there = broker.queue("here"), broker.queue("there")
    for n in range(10):
        here.put(n, headers={"odd": n % 2 == 1})
    assert here.move(there, selector="odd", limit=3) == 3
    assert bodies(there) == [1, 3, 5]
    assert here.move(there, limit=2) == 2
    assert bodies(there) == [1, 3, 5, 0, 2]
    assert bodies(here) == [4, 6, 7, 8, 9]


def test_a_copy_leaves_everything_where_it_is(broker: shmq.Broker) -> None:
    here, there = broker.queue("here"), broker.queue("there")
    here.put("a", headers={"n": 1}, ttl=1000)
    here.put("b")
    held = here.receive(timeout=0)
    assert here.move(there, copy=True) == 2
    assert bodies(there) == ["a", "b"]
    (first, _) = there.browse()
    assert dict(first.headers) == {"n": 1}
    assert first.expires_at is not None
    assert first.expires_at - time.time() == pytest.approx(1000, abs=60)
    held.ack()
    assert bodies(here) == ["b"]


def test_what_its_queue_says_of_its_life_stays_there(broker: shmq.Broker) -> None:
    here, there = broker.queue("here", max_ttl=1000), broker.queue("there")
    here.put("for ever")
    here.put("long", ttl=3000)
    held = here.receive(timeout=0)
    assert held.expires_at is not None
    held.release()
    for copy in (True, False):
        assert here.move(there, copy=copy) == 2
        for_ever, long = there.browse()
        assert for_ever.expires_at is None
        assert long.expires_at is not None
        assert long.expires_at - time.time() == pytest.approx(3000, abs=60)
        there.purge()


def test_what_consumers_hold_stays_theirs(broker: shmq.Broker) -> None:
    here, there = broker.queue("here"), broker.queue("there")
    here.put_many(["a", "b", "c"])
    held = here.receive(timeout=0)
    assert here.move(there) == 2
    assert bodies(there) == ["b", "c"]
    held.ack()


def test_the_limits_of_the_target_hold_and_full_says_how_many(broker: shmq.Broker) -> None:
    here, there = broker.queue("here"), broker.queue("there", maxsize=3)
    here.put_many(range(5))
    with pytest.raises(shmq.Full) as full:
        here.move(there)
    assert full.value.accepted == 3
    assert (bodies(there), bodies(here)) == ([0, 1, 2], [3, 4])
    there.purge()
    with pytest.raises(shmq.Full) as full:
        there.put_many([*"abcd"], timeout=0)
    assert full.value.accepted == 3
    there.purge()
    assert here.move(there) == 2
    assert here.statistics().unsettled == 0


def test_delays_and_times_to_live_go_along(broker: shmq.Broker) -> None:
    here, there = broker.queue("here"), broker.queue("there")
    here.put("later", delay=1000, ttl=2000)
    here.put("mortal", ttl=2000)
    here.put("over", ttl=0)
    assert here.move(there) == 2
    statistics = there.statistics()
    assert (statistics.delayed, statistics.ready) == (1, 1)
    for m in there.browse():
        assert m.expires_at is not None
        assert m.expires_at - time.time() == pytest.approx(2000, abs=60)
    full = broker.queue("full", maxsize=1)
    full.put("x")
    with pytest.raises(shmq.Full):
        there.move(full)
    assert there.statistics().delayed == 1


def test_unfit_targets_and_limits_are_refused(broker: shmq.Broker, tmp_path: Any) -> None:
    here, there = broker.queue("here"), broker.queue("there")
    here.put("a")
    with pytest.raises(ValueError, match="itself"):
        here.move(here)
    with pytest.raises(ValueError, match="itself"):
        here.move(broker.queue("here"), copy=True)
    with pytest.raises(ValueError, match="1 or more"):
        here.move(there, limit=0)
    with pytest.raises(TypeError, match="number of messages"):
        here.move(there, limit="5")  # type: ignore[arg-type]
    with pytest.raises(shmq.SelectorError):
        here.move(there, selector="a = ")
    with shmq.open(tmp_path / "other", memory="16MiB") as other, pytest.raises(ValueError, match="another broker"):
        here.move(other.queue("there"))
    there.shutdown()
    with pytest.raises(shmq.ShutDown):
        here.move(there)
    there.delete()
    with pytest.raises(shmq.NotFound):
        here.move(there)
    assert bodies(here) == ["a"]
    assert here.qsize() == 1


def test_moving_to_and_fro_keeps_every_message(broker: shmq.Broker, seed: int) -> None:
    chance = random.Random(seed)
    queues = [broker.queue(name, priorities=1 + 4 * (name == "b")) for name in "abc"]
    for n in range(200):
        queues[0].put(n if n % 7 else b"%d " % n * 2000)
    for _ in range(60):
        here, there = chance.sample(queues, 2)
        here.move(there, limit=chance.randint(1, 50))
        assert sum(queue.qsize() for queue in queues) == 200
    found = [m.body if isinstance(m.body, int) else int(m.body.split()[0]) for q in queues for m in q.browse()]
    assert sorted(found) == list(range(200))
