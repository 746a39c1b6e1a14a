"""Options and bodies that the native core reads by itself come in as those that Python reads."""

import math
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shmq

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS)
BODIES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4))
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(
    lambda name: not name.startswith(("shmq-", "JMS"))
)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([0, 127, 128, -128, -129, 32767, 32768, -(1 << 31)])
HEADERS = st.dictionaries(
    NAMES,
    st.one_of(
        st.none(), st.booleans(), NUMBERS, LEAVES.filter(lambda v: type(v) is float), TEXTS, st.binary(max_size=60)
    ),
    max_size=6,
)
SECONDS = st.one_of(
    st.integers(0, 10**9 - 1), st.floats(0, 1e9, exclude_max=True), st.sampled_from([1e-9, 5e-10, 1e-300, 2.5e-9])
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "headers": HEADERS | st.none(),
        "priority": st.integers(0, 9),
        "group": st.text(st.characters(codec="utf-8"), min_size=1, max_size=60) | st.none(),
        "ttl": st.one_of(st.none(), SECONDS.map(lambda s: s + 100), st.just(1e10), st.just(math.inf)),
        "delay": st.floats(0, 50) | st.integers(0, 50),
        "immediate": st.just(False),
    },
)


class Level(IntEnum):
    HIGH = 9


class Name(str):
    pass


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[shmq.Queue[Any]]]:
    """Two queues of one kind."""
    with shmq.open(tmp_path_factory.mktemp("twins") / "b.shmq", memory="16MiB", disk=0) as broker:
        yield [broker.queue(name, priorities=3, groups="shared") for name in ("natively", "in-python")]
        broker.delete()


def seen(queue: shmq.Queue[Any]) -> list[Any]:
    """All that a consumer can tell of each message but its id and times, and for how long it lives, in minutes."""
    found = []
    for m in queue.browse():
        lives = None if m.expires_at is None else round((m.expires_at - m.enqueued_at) / 60)
        headers = [(name, type(value), repr(value)) for name, value in m.headers.items()]
        found.append((m.content_type, m.priority, m.group, lives, headers, bytes(m.view())))
    queue.purge()
    return found


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=BODIES | st.binary(max_size=300), options=OPTIONS)
def test_a_put_that_c_reads_is_the_put_that_python_reads(
    twins: list[shmq.Queue[Any]], body: Any, options: dict[str, Any]
) -> None:
    natively, in_python = twins
    natively.put(body, **options)
    in_python._put_slow(body, dict(options))
    single = seen(natively)
    assert single == seen(in_python)
    natively.put_many([body, b"x"], **options)
    assert seen(natively)[0] == single[0]


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"shmq-x": 1}},
        {"headers": {"JMSType": 1}},
        {"headers": {"": 1}},
        {"headers": {"n" * 256: 1}},
        {"headers": {"a\ud800": 1}},
        {"headers": {"a": "\ud800"}},
        {"headers": {"a": math.nan}},
        {"headers": {"a": math.inf}},
        {"headers": {"a": 1 << 63}},
        {"headers": {"a": [1]}},
        {"headers": {"a": Level.HIGH}},
        {"headers": {"a": Name("x")}},
        {"headers": {Name("a"): 1}},
        {"headers": {"a": "x" * 65_536}},
        {"headers": {"a": "x" * 40_000, "b": "x" * 40_000}},
        {"headers": {str(n): "x" * 100 for n in range(700)}},
        {"headers": [("a", 1)]},
        {"headers": {1: 1}},
        {"priority": 10},
        {"priority": -1},
        {"priority": True},
        {"priority": 1.0},
        {"priority": 1 << 70},
        {"priority": None},
        {"group": ""},
        {"group": "g" * 256},
        {"group": "\ud800"},
        {"group": b"a"},
        {"ttl": -1},
        {"ttl": math.nan},
        {"ttl": True},
        {"ttl": "1"},
        {"ttl": -(1 << 2000)},
        {"delay": -1e-300},
        {"delay": 1e9},
        {"delay": math.inf},
        {"delay": 1 << 2000},
        {"delay": None},
        {"delay": 2, "ttl": 2},
        {"immediate": "yes"},
        {"prioritty": 1},
        {"headers": {"a": 1}, "timeout": "soon"},
        {"headers": {"a": 1}, "timeout": -1},
    ],
    ids=lambda options: ascii(options)[:40],
)
def test_an_option_that_is_refused_is_refused_with_the_same_words(
    twins: list[shmq.Queue[Any]], options: dict[str, Any]
) -> None:
    natively, in_python = twins
    with pytest.raises((TypeError, ValueError)) as expected:
        in_python._put_slow(b"x", dict(options))
    for put in (lambda: natively.put(b"x", **options), lambda: natively.put_many([b"x"], **options)):
        with pytest.raises((TypeError, ValueError)) as told:
            put()
        assert told.type is expected.type
        assert str(told.value).removeprefix("put_many(), body number 0, counted from 0: ") == str(expected.value)
    assert natively.qsize() == in_python.qsize() == 0


def test_what_a_queue_does_not_have_is_refused_whatever_reads_it(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk=0) as broker:
        plain = broker.queue("plain", max_ttl=10)
        for put in (lambda **o: plain.put(1, **o), lambda **o: plain.put_many([1], **o)):
            with pytest.raises(ValueError, match="has no priorities"):
                put(priority=4)
            with pytest.raises(ValueError, match="has no groups"):
                put(group="a")
            with pytest.raises(ValueError, match="max_ttl of the queue is 10 s"):
                put(delay=10)
            put(delay=9, headers={}, group=None, ttl=None)
        assert plain.statistics().delayed == 2


@pytest.mark.parametrize(
    "body",
    [
        math.nan,
        [math.inf],
        {1: 2},
        {"a": (1, 2)},
        "\ud800",
        {"\ud800": 1},
        Level.HIGH,
        [Name("x")],
        10**4300,
        {"a": {1, 2}},
    ],
    ids=lambda body: type(body).__name__,
)
def test_a_body_that_json_has_no_form_for_is_refused_as_before(twins: list[shmq.Queue[Any]], body: Any) -> None:
    for queue in twins:
        with pytest.raises(TypeError, match="would not come back equal"):
            queue.put(body)
        with pytest.raises(TypeError, match="put_many\\(\\), body number 1"):
            queue.put_many([1, body])
        assert queue.get_many(5, timeout=0) == [1]


def test_deep_and_long_bodies_come_back_equal(twins: list[shmq.Queue[Any]]) -> None:
    queue = twins[0]
    deep: Any = "bottom"
    for depth in range(250):
        deep = [deep] if depth % 2 else {"in": deep}
    cycle: list[Any] = []
    cycle.append(cycle)
    bodies = [
        deep,
        '\x00\x1f\x7f"\\/\b\f\n\r\t é€😀',
        {"k" * 5000: ["v\n" * 5000] * 20},
        10**18,
        -(10**18),
        10**19,
        1e300,
        5e-324,
        -0.0,
    ]
    for body in bodies:
        queue.put([body])
        came = queue.get(timeout=5.0)
        assert came == [body]
        assert math.copysign(1, came[0]) == math.copysign(1, body) if isinstance(body, float) else True
    with pytest.raises(TypeError, match="nested deeper than 256 levels"):
        queue.put(cycle)
