# ruff: noqa
# fmt: off
# The public surface, decided before the code. A mark such as [log] names the stage that builds a thing; no mark: it is there.
# tests/typing/test_surface.py compares the package with this listing, signature by signature.
"""The exception tree. Each message has three parts: what happened, the figures, the remedy. All can be pickled.

ShmqError
 |- Empty (queue.Empty)                 nothing came within the timeout
 |- Full (queue.Full)                   no room came within the timeout
 |- ShutDown (queue.ShutDown)           the queue was shut down (Python 3.11, 3.12: without that base)
 |- Timeout (TimeoutError)              no reply to request(), or join() not done
 |- Closed (ValueError)                 this handle, or its broker in this process, is closed
 |- SettlementError                     settled before, taken away, of another process, only browsed, or dropped unsettled
 |- MessageTooLarge (ValueError)        would never fit
 |- DecodeError (ValueError)            the handle's codec does not understand this body
 |- SelectorError (ValueError)          malformed selector, with the place
 |- Returned                            immediate and not taken, or mandatory and nobody bound (.reason)
 |- ConsumerRefused                     the queue has an exclusive consumer, or would get one beside others
 |- TransactionAborted                  timeout, a deleted queue, a failed log write; nothing of it happened
 |- NotFound (LookupError)              no such queue or exchange (create=False), or deleted while in use
 |- OptionsMismatch (ValueError)        given options differ from those of the broker, queue or exchange
 |- WorkerError                         the pool gives up: workers die as they start
 `- BrokerError (OSError)
     |- BrokerNotFound (FileNotFoundError)   no broker there (create=False), or its directory was deleted
     |- VersionMismatch                      made by another version or layout of shmq; says which field differs
     |- OutOfSpace                           errno ENOSPC: /dev/shm or the disk is full
     `- CorruptionError                      damage found and quarantined; says where, and what is safe
Besides: PermissionError for another user's broker, TypeError for a body that the codec does not take, ValueError for an
argument out of range.
"""
import queue
from typing import Literal


class ShmqError(Exception):
    @property
    def remedy(self) -> str: ...
    accepted: int                    # of put_many and move: how many messages of the call are in

class Empty(ShmqError, queue.Empty): ...
class Full(ShmqError, queue.Full):
    resource: Literal["maxsize", "max_bytes", "memory", "disk"]
    limit: int
    used: int

class ShutDown(ShmqError): ...
class Timeout(ShmqError, TimeoutError): ...
class Closed(ShmqError, ValueError): ...
class SettlementError(ShmqError): ...
class MessageTooLarge(ShmqError, ValueError): ...
class DecodeError(ShmqError, ValueError): ...
class SelectorError(ShmqError, ValueError): ...
class Returned(ShmqError):
    reason: Literal["no_consumer", "no_route"]

class ConsumerRefused(ShmqError): ...
class TransactionAborted(ShmqError): ...
class NotFound(ShmqError, LookupError): ...
class OptionsMismatch(ShmqError, ValueError): ...
class WorkerError(ShmqError): ...
class BrokerError(ShmqError, OSError): ...
class BrokerNotFound(BrokerError, FileNotFoundError): ...
class VersionMismatch(BrokerError): ...
class OutOfSpace(BrokerError): ...
class CorruptionError(BrokerError): ...
