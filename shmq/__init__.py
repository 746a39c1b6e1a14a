"""shmq: message queues for the processes of one host, in a directory, without a server.

Start with `shmq.open(path)`: a Broker, whose `queue(name)` gives Queues. `shmq.mp` takes the place of multiprocessing's
queues. Below: runtime wires, engine has queues and messages, core is the thin face of the native library.
"""

import sys

if "".join(sys.orig_argv[1:2]).endswith("/shmq") or sys.orig_argv[1:3] == ["-m", "shmq"]:
    # This process is the command: from here on Ctrl-C prints no traceback of what is just being loaded. (sys.argv would
    # not do: the processes that multiprocessing starts have it from their parent.)
    from shmq.command_start import guard_the_start

    guard_the_start()

import os
import typing

if not sys.platform.startswith("linux"):
    raise ImportError("shmq runs on Linux only: it stands on futexes, open-file-description locks and /dev/shm")

try:
    import shmq._native  # noqa: F401 - first of all, to say why it is missing
except ModuleNotFoundError:
    _home = os.path.dirname(__path__[0])
    _text = f"shmq in {_home} has no native core; install shmq again"
    if os.path.exists(os.path.join(_home, "pyproject.toml")):
        _text = (
            f"{_home} is the source tree of shmq, and is not built for this Python; start Python in another directory "
            f"to use the shmq that is installed, or use {_home}/.venv/bin/python, which {_home}/tools/run makes"
        )
    raise ImportError(_text, name="shmq._native") from None

from shmq.alerts import Alerts
from shmq.codec import Codec
from shmq.death import Death
from shmq.engine.consumer.consumer import Consumer
from shmq.engine.message.loan import Loan
from shmq.engine.message.message import Message
from shmq.engine.queue.queue import Queue
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
from shmq.whole_import import import_whole as _import_whole

if typing.TYPE_CHECKING:
    from shmq.pool.worker_pool import WorkerPool
    from shmq.statistics import BrokerStatistics, PoolCounts, ProcessInfo, QueueStatistics

__all__ = [
    "Alerts",
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
    "PoolCounts",
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
        _import_whole("shmq.pool.worker_pool")
        from shmq.pool.worker_pool import WorkerPool

        return WorkerPool
    if name in ("BrokerStatistics", "PoolCounts", "ProcessInfo", "QueueStatistics"):  # made when somebody looks
        _import_whole("shmq.statistics")
        from shmq import statistics

        return getattr(statistics, name)
    raise AttributeError(f"module 'shmq' has no attribute {name!r}")
