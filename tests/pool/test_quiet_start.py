"""A child ignores Ctrl-C before it imports what it runs."""

import pickle
import pickletools
import signal
from collections.abc import Iterator

import pytest

from shmq.pool.quiet_start import QuietStart
from tests.pool import handlers


@pytest.fixture(autouse=True)
def _signals_stay() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_unpickling_gives_the_plain_target_and_ctrl_c_is_ignored() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert pickle.loads(pickle.dumps(QuietStart(handlers.square))) is handlers.square
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_the_signal_is_ignored_before_the_module_of_the_target_is_named() -> None:
    names = [argument for _, argument, _ in pickletools.genops(pickle.dumps(QuietStart(handlers.square), 2))]
    texts = [str(name) for name in names]
    assert texts.index("signal signal") < texts.index("tests.pool.handlers square")


def test_without_pickling_the_call_does_both() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    QuietStart(handlers.prepare)("word")
    assert handlers.ended_by.pop() == "word"
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
