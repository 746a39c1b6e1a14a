"""The exception tree: what each class is besides a ShmqError, its three-part text, and that copies keep all of it."""

import copy
import errno
import pickle
import queue
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shmq import errors
from shmq.errors import BrokerError, BrokerNotFound, CorruptionError, Full, OutOfSpace, Returned, ShmqError, Timeout

SHUT_DOWN: tuple[type[Exception], ...] = ()
if sys.version_info >= (3, 13):
    SHUT_DOWN = (queue.ShutDown,)

BASES: dict[str, tuple[type[Exception], ...]] = {
    "ShmqError": (Exception,),
    "Empty": (queue.Empty,),
    "Full": (queue.Full,),
    "ShutDown": SHUT_DOWN,
    "Timeout": (TimeoutError,),
    "Closed": (ValueError,),
    "SettlementError": (),
    "MessageTooLarge": (ValueError,),
    "DecodeError": (ValueError,),
    "SelectorError": (ValueError,),
    "Returned": (),
    "ConsumerRefused": (),
    "TransactionAborted": (),
    "NotFound": (LookupError,),
    "OptionsMismatch": (ValueError,),
    "WorkerError": (),
    "BrokerError": (OSError,),
    "BrokerNotFound": (BrokerError, FileNotFoundError),
    "VersionMismatch": (BrokerError,),
    "OutOfSpace": (BrokerError,),
    "CorruptionError": (BrokerError,),
}
CLASSES: list[type[ShmqError]] = [getattr(errors, name) for name in BASES]

COPIES: list[Callable[[ShmqError], ShmqError]] = [
    copy.copy,
    copy.deepcopy,
    *(lambda error, p=p: pickle.loads(pickle.dumps(error, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)),
]


class Awkward(BrokerError):
    """A subclass with parameters of its own, as a program may write it."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__("awkward", errno=errno.EIO, filename="/f")
        self.first, self.second = first, second


def samples() -> list[ShmqError]:
    plain = [kind("it happened", figures="3 of 4", remedy="do this") for kind in CLASSES]
    bare = [kind() for kind in CLASSES]
    return [
        *plain,
        *bare,
        Full("full", resource="memory", limit=10, used=9, accepted=3, figures="9 of 10", remedy="take some"),
        Returned("back", reason="no_route"),
        BrokerError("no", errno=errno.EACCES, filename=Path("/some/dir")),
        BrokerError("no", filename="/some/dir"),
        OutOfSpace("full", filename="/dev/shm", remedy="enlarge it"),
        BrokerNotFound("none", figures="f", filename="/some/dir"),
        CorruptionError("damage", errno=errno.EIO),
        Awkward(1, 2),
    ]


def facts(error: ShmqError) -> dict[str, object]:
    names = ("errno", "strerror", "filename", "filename2")
    native = {name: getattr(error, name) for name in names} if isinstance(error, OSError) else {}
    return {**vars(error), **native, "args": error.args, "str": str(error), "repr": repr(error), "type": type(error)}


def test_the_tree_has_exactly_the_listed_classes() -> None:
    found = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ShmqError)}
    assert found == set(BASES)
    assert errors.__all__ == sorted(BASES)


@pytest.mark.parametrize("name", BASES)
def test_each_class_is_what_the_tree_says(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, (ShmqError, *BASES[name]))
    assert all(issubclass(kind, base) for base in BASES[name])
    assert kind.__doc__
    error = kind("it happened", figures="3 of 4", remedy="do this")
    assert isinstance(error, ShmqError)
    assert all(isinstance(error, base) for base in BASES[name])


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_text_has_three_parts(kind: type[ShmqError]) -> None:
    error = kind("it happened", figures="3 of 4", remedy="do this")
    assert str(error) == "it happened: 3 of 4; do this"
    assert (error.what, error.figures, error.remedy) == ("it happened", "3 of 4", "do this")


def test_parts_that_are_not_given_leave_no_trace() -> None:
    assert str(ShmqError("it happened")) == "it happened"
    assert str(ShmqError("it happened", remedy="do this")) == "it happened; do this"
    assert str(ShmqError("it happened", figures="3 of 4")) == "it happened: 3 of 4"
    assert str(ShmqError()) == ""
    assert ShmqError("it happened").remedy == ""


@pytest.mark.parametrize("duplicate", COPIES)
@pytest.mark.parametrize("error", samples(), ids=lambda error: type(error).__name__)
def test_every_error_is_pickled_and_copied_with_all_it_has(
    error: ShmqError, duplicate: Callable[[ShmqError], ShmqError]
) -> None:
    error.add_note("a note")
    error.extra = [1, 2]  # type: ignore[attr-defined]
    again = duplicate(error)
    assert again is not error
    assert facts(again) == facts(error)


def test_full_has_resource_limit_and_use() -> None:
    error = Full("full", resource="disk", limit=10, used=9, accepted=3)
    assert (error.resource, error.limit, error.used, error.accepted) == ("disk", 10, 9, 3)


def test_returned_has_a_reason() -> None:
    assert Returned("back", reason="no_route").reason == "no_route"


def test_broker_errors_carry_the_number_and_file_of_the_system() -> None:
    error = BrokerError("no", figures="f", remedy="r", errno=errno.EACCES, filename="/some/dir")
    assert (error.errno, error.filename, error.strerror) == (errno.EACCES, "/some/dir", "no: f; r")
    assert str(error) == "no: f; r"


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (OutOfSpace("x"), errno.ENOSPC),
        (OutOfSpace("x", filename="/dev/shm"), errno.ENOSPC),
        (OutOfSpace("x", errno=errno.EDQUOT), errno.EDQUOT),
        (BrokerNotFound("x"), errno.ENOENT),
        (BrokerNotFound("x", filename="/d"), errno.ENOENT),
        (BrokerError("x"), None),
        (BrokerError("x", filename="/d"), None),
        (Timeout("x"), errno.ETIMEDOUT),
    ],
)
def test_system_errors_have_their_number(error: OSError, number: int | None) -> None:
    assert error.errno == number


def test_a_filename_may_be_a_path_object() -> None:
    assert BrokerError("x", filename=Path("/a/b")).filename == "/a/b"


def test_a_not_found_broker_is_caught_as_file_not_found() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        raise BrokerNotFound("no broker there", filename="/d", remedy="create it")
    assert caught.value.filename == "/d"
