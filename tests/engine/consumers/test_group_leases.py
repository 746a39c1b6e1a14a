"""Groups whose owner has held a message for longer than its lease, and lives."""

import pytest

import shmq
from shmq.errors import Empty, SettlementError
from tests.engine.child import eventually
from tests.engine.consumers.test_groups import fill, gets_nothing, taken


def test_a_late_settlement_does_not_free_what_another_has(broker: shmq.Broker) -> None:
    """Taken from a live one when the lease was over: its owner's ack fails, and the group stays with whom it is now."""
    queue = broker.queue("leased", groups="shared", lease=2.0)
    fill(queue, "aa")
    with queue.consumer() as one, queue.consumer() as two:
        late = taken(one, "a1")
        m = two.receive(timeout=30)
        assert m.body == "a1"
        queue.alter(lease=None)
        with pytest.raises(SettlementError):
            late.ack()
        if queue.statistics().unsettled:
            gets_nothing(one)
        m.ack()


def test_a_consumer_that_overran_one_lease_keeps_its_sticky_group_if_it_had_more_of_it(
    broker: shmq.Broker,
) -> None:
    """Shows G1."""
    sticky = broker.queue("orders", groups="sticky")
    fill(sticky, "aa")
    with sticky.consumer() as one, sticky.consumer() as two:
        first = taken(one, "a1")
        sticky.alter(lease=0.05)
        late = one.receive(timeout=0)
        eventually(lambda: sticky.statistics().unsettled == 1)  # a2 was taken from it
        sticky.alter(lease=None)
        gets_nothing(two)
        first.ack()
        with pytest.raises(Empty):
            two.receive(timeout=1)  # ten times the patience: whoever looks after the group has done so
        again = taken(one, "a2")
        with pytest.raises(SettlementError):
            late.ack()
        again.ack()
