"""shmq: message queues for the processes of one host, in a directory, without a server.

Start with `shmq.open(path)`: a Broker, whose `queue(name)` gives Queues. `shmq.mp` takes the place of multiprocessing's
queues. Below: runtime wires, engine has queues and messages, core is the thin face of the native library.
"""

import sys
import typing

if not sys.platform.startswith("linux"):
    raise ImportError("shmq runs on Linux only: it stands on futexes, open-file-description locks and /dev/shm")

from shmq.codec import Codec
from shmq.death import Death
from shmq.engine.consumer import Consumer
from shmq.engine.loan import Loan
from shmq.engine.message import Message
from shmq.engine.queue import Queue
from shmq.errors import (
    BrokerError,
    BrokerNotFound,
    Closed,
    ConsumerRefused,
    CorruptionError,
    DecodeError,
    Empty,
    Full,
    MessageTooLarge,
    NotFound,
    OptionsMismatch,
    OutOfSpace,
    Returned,
    SelectorError,
    SettlementError,
    ShmqError,
    ShutDown,
    Timeout,
    TransactionAborted,
    VersionMismatch,
    WorkerError,
)
from shmq.headers import Header
from shmq.options import Durability, PutOptions, QueueOptions, Size
from shmq.runtime import Broker, open
from shmq.version import __version__

if typing.TYPE_CHECKING:
    from shmq.pool.worker_pool import WorkerPool
    from shmq.statistics import BrokerStatistics, ProcessInfo, QueueStatistics

__all__ = [
    "Broker",
    "BrokerError",
    "BrokerNotFound",
    "BrokerStatistics",
    "Closed",
    "Codec",
    "Consumer",
    "ConsumerRefused",
    "CorruptionError",
    "Death",
    "DecodeError",
    "Durability",
    "Empty",
    "Full",
    "Header",
    "Loan",
    "Message",
    "MessageTooLarge",
    "NotFound",
    "OptionsMismatch",
    "OutOfSpace",
    "ProcessInfo",
    "PutOptions",
    "Queue",
    "QueueOptions",
    "QueueStatistics",
    "Returned",
    "SelectorError",
    "SettlementError",
    "ShmqError",
    "ShutDown",
    "Size",
    "Timeout",
    "TransactionAborted",
    "VersionMismatch",
    "WorkerError",
    "WorkerPool",
    "__version__",
    "open",
]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> typing.Any:
    if name == "WorkerPool":  # brings multiprocessing along: only for those who use it
        from shmq.pool.worker_pool import WorkerPool

        return WorkerPool
    if name in ("BrokerStatistics", "ProcessInfo", "QueueStatistics"):  # made when somebody looks
        from shmq import statistics

        return getattr(statistics, name)
    raise AttributeError(f"module 'shmq' has no attribute {name!r}")
