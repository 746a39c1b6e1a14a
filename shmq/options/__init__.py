"""Options of brokers, queues and messages: their types, and the checks that every entrance makes."""

from __future__ import annotations

from shmq.options.broker import BROKER_DEFAULTS, BrokerSettings, Durability, check_broker_options
from shmq.options.consumer import check_consumer_priority, check_limit, check_prefetch
from shmq.options.message import (
    PUT_OPTIONS,
    PutOptions,
    PutSettings,
    check_put_options,
    delay_in_ns,
)
from shmq.options.queue import (
    DEFAULTS,
    FIXED_QUEUE_OPTIONS,
    QUEUE_OPTIONS,
    QueueOptions,
    QueueSettings,
    as_given,
    check_queue_options,
)
from shmq.options.stage import LATER_PUT_OPTIONS, LATER_QUEUE_OPTIONS
from shmq.options.value import Size, check_bool, check_timeout, parse_size
from shmq.options.written import as_written

__all__ = [
    "BROKER_DEFAULTS",
    "DEFAULTS",
    "FIXED_QUEUE_OPTIONS",
    "LATER_PUT_OPTIONS",
    "LATER_QUEUE_OPTIONS",
    "PUT_OPTIONS",
    "QUEUE_OPTIONS",
    "BrokerSettings",
    "Durability",
    "PutOptions",
    "PutSettings",
    "QueueOptions",
    "QueueSettings",
    "Size",
    "as_given",
    "as_written",
    "check_bool",
    "check_broker_options",
    "check_consumer_priority",
    "check_limit",
    "check_prefetch",
    "check_put_options",
    "check_queue_options",
    "check_timeout",
    "delay_in_ns",
    "parse_size",
]
