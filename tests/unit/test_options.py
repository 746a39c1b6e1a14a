"""Options: sizes, durations, and the check of each option's type, range and stage."""

import math
import re
from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmq.alerts import Alerts
from shmq.options import (
    BROKER_DEFAULTS,
    DEFAULTS,
    FIXED_QUEUE_OPTIONS,
    LATER_PUT_OPTIONS,
    LATER_QUEUE_OPTIONS,
    PUT_OPTIONS,
    QUEUE_OPTIONS,
    BrokerSettings,
    PutOptions,
    PutSettings,
    QueueOptions,
    QueueSettings,
    as_given,
    check_broker_options,
    check_put_options,
    check_queue_options,
    check_timeout,
    parse_size,
)
from shmq.options.stage import NOT_BUILT

UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "": 1}
HUGE = pytest.param(10**5000, id="huge")  # pytest could not write it as text


alerts_of: Any = Alerts  # of whatever types


class Target:
    def __init__(self, name: Any) -> None:
        self.name = name


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("space", ["", " "])
def test_a_size_may_have_a_unit(unit: str, space: str) -> None:
    assert parse_size(f"64{space}{unit}", "memory") == 64 * UNITS[unit]


@pytest.mark.parametrize(
    ("value", "size"),
    [(0, 0), (4096, 4096), (2**63 - 1, 2**63 - 1), ("1.5GiB", 3 * 2**29), ("0.5kB", 500), (" 7 MiB ", 7 * 2**20)],
)
def test_a_size_is_a_whole_number_of_bytes(value: int | str, size: int) -> None:
    assert parse_size(value, "memory") == size


@pytest.mark.parametrize(
    "value",
    [
        "", "MiB", "64M", "64k", "64mib", "-1", "+1", "1e6", "1_000", "64 MiB x", "0x10", "٣", "1.", ".5GiB", "0.3B",
        "0.0001KiB", "9" * 20, "8388608TiB", "9" * 1000, "64\nMiB\n\n x", -1, 2**63, HUGE,
    ],
)  # fmt: skip
def test_what_is_no_size_is_refused_with_option_and_remedy(value: int | str) -> None:
    with pytest.raises(ValueError, match=r"^max_bytes=.*; give ") as caught:
        parse_size(value, "max_bytes")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [None, 1.0, True, b"64MiB", [1]])
def test_a_size_of_another_type_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^memory is of the type .*; give bytes as int"):
        parse_size(value, "memory")


@given(st.integers(0, 2**63 - 1))
def test_a_number_and_its_text_are_the_same_size(number: int) -> None:
    assert parse_size(number, "x") == parse_size(str(number), "x") == parse_size(f"{number} B", "x") == number


@pytest.mark.parametrize(("given", "seconds"), [(0, 0.0), (-0.0, 0.0), (1.5, 1.5), (3, 3.0), (Fraction(1, 2), 0.5)])
def test_a_duration_becomes_seconds_as_float(given: Any, seconds: float) -> None:
    checked = check_timeout(given)
    assert checked == seconds
    assert type(checked) is float


@pytest.mark.parametrize("given", [None, math.inf, 1e9, 1e300, 10**400])
def test_no_duration_or_one_beyond_a_life_waits_for_ever(given: float | None) -> None:
    assert check_timeout(given) is None


@pytest.mark.parametrize("given", [-1, -0.001, math.nan, -math.inf, pytest.param(-(10**5000), id="huge")])
def test_a_duration_out_of_range_is_a_value_error(given: float) -> None:
    with pytest.raises(ValueError, match=r"^patience=.*; give seconds >= 0"):
        check_timeout(given, "patience")


@pytest.mark.parametrize("given", [True, False, "1", b"1", 1j, [1]])
def test_a_duration_that_is_no_number_is_a_type_error(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^timeout=.* is of the type .*; give seconds"):
        check_timeout(given)


@pytest.fixture
def all_built() -> Iterator[None]:
    """Options are checked alike whether what they say is built or not."""
    kept = set(NOT_BUILT)
    NOT_BUILT.clear()
    yield
    NOT_BUILT.update(kept)


def test_options_that_are_not_given_stay_none() -> None:
    assert check_queue_options({}) == QueueSettings()
    assert as_given(QueueSettings()) == {}


def test_all_options_of_a_queue_are_taken(all_built: None) -> None:
    options: QueueOptions = {
        "maxsize": 10,
        "slot_size": "1KiB",
        "temporary": True,
        "max_attempts": 0,
        "max_deaths": 65_535,
        "checksum": False,
        "dead_letter": "graveyard",
        "max_bytes": "1MiB",
        "overflow": "drop_oldest",
        "priorities": 10,
        "groups": "sticky",
        "retry_delay": (1, 10, 60.5),
        "max_ttl": 3600,
        "dead_letter_expired": True,
        "lease": 30,
        "live_consumers": 1,
        "expires": 0,
        "max_memory": None,
        "alerts": Alerts(messages=10, bytes=2**30, message_bytes=2**20, age=0.5, repeat=2),
    }
    taken = check_queue_options(options)
    assert taken == QueueSettings(
        10, 1024, True, 0, 65_535, False, "graveyard", 2**20, "drop_oldest", 10, "sticky", (1.0, 10.0, 60.5), 3600.0,
        True, 30.0, 1, 0.0, 0, (10, 2**30, 2**20, 0.5, 2.0),
    )  # fmt: skip
    assert set(as_given(taken)) == set(options)
    assert check_queue_options(as_given(taken)) == taken


@pytest.mark.parametrize("name", ["groups", "max_ttl", "lease", "live_consumers", "expires", "alerts"])
def test_none_takes_a_limit_away_and_differs_from_not_given(all_built: None, name: str) -> None:
    taken = check_queue_options({name: None})
    assert taken != QueueSettings()
    assert getattr(taken, name) == getattr(DEFAULTS, name)
    assert as_given(taken) == {name: None}


@pytest.mark.parametrize(("given", "taken"), [(5, (5.0,)), (0, (0.0,)), ([1.5], (1.5,)), ((1, 2) * 4, (1.0, 2.0) * 4)])
def test_a_retry_delay_is_a_number_or_a_sequence(all_built: None, given: Any, taken: tuple[float, ...]) -> None:
    assert check_queue_options({"retry_delay": given}).retry_delay == taken


def test_a_queue_may_stand_for_its_name_as_dead_letter() -> None:
    assert check_queue_options({"dead_letter": Target("graveyard")}).dead_letter == "graveyard"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxsize", 0), ("maxsize", 2**32 - 2), ("slot_size", 128), ("slot_size", 4096), ("slot_size", 192),
        ("max_attempts", 65_535), ("max_deaths", 0), ("max_bytes", 0), ("max_bytes", 2**38), ("priorities", 1),
        ("priorities", 10), ("live_consumers", 1), ("live_consumers", 1_023), ("max_ttl", 0), ("lease", 1e-9),
        ("expires", 0),
    ],
)  # fmt: skip
def test_the_ends_of_a_range_belong_to_it(all_built: None, name: str, value: int) -> None:
    assert getattr(check_queue_options({name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("maxsize", 10**5000, id="huge"),
        ("maxsize", -1), ("maxsize", 2**32 - 1), ("slot_size", 64), ("slot_size", 4160),
        ("slot_size", 200), ("slot_size", "big"), ("max_attempts", -1), ("max_attempts", 65_536),
        ("max_deaths", -1), ("max_deaths", 65_536), ("dead_letter", ""), ("dead_letter", "a/b"),
        ("dead_letter", Target("a/b")), ("max_bytes", -1), ("max_bytes", 2**38 + 1), ("overflow", "drop"),
        ("priorities", 0), ("priorities", 11), ("groups", "none"), ("retry_delay", -1), ("retry_delay", ()),
        ("retry_delay", (1,) * 9), ("retry_delay", (1, math.inf)), ("retry_delay", math.nan), ("max_ttl", -1),
        ("max_ttl", math.nan), ("lease", 0), ("lease", -1), ("live_consumers", 0), ("live_consumers", 1_024),
        ("expires", -0.1), ("alerts", Alerts(messages=0)), ("alerts", Alerts(bytes=-1)), ("alerts", Alerts(age=0)),
        ("alerts", Alerts(message_bytes=2**40 + 1)), ("alerts", Alerts(repeat=0)), ("alerts", Alerts(age=math.nan)),
    ],
)  # fmt: skip
def test_an_option_out_of_range_is_a_value_error_that_names_it(all_built: None, name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name}[=:].*; "):
        check_queue_options({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxsize", None), ("maxsize", 1.0), ("maxsize", True), ("maxsize", "5"), ("slot_size", 128.0),
        ("temporary", 1), ("temporary", None), ("checksum", "yes"), ("max_attempts", False), ("max_deaths", 3.0),
        ("dead_letter", None), ("dead_letter", b"q"), ("dead_letter", Target(7)), ("dead_letter", Target),
        ("max_bytes", None), ("max_bytes", 1.0), ("overflow", None), ("overflow", 1), ("priorities", "2"),
        ("priorities", None), ("groups", True), ("retry_delay", None), ("retry_delay", "1,2"),
        ("retry_delay", (1, "2")),
        ("retry_delay", {1, 2}), ("max_ttl", "1"), ("dead_letter_expired", 1), ("lease", True),
        ("live_consumers", 1.5), ("expires", "0"), ("alerts", 10), ("alerts", Alerts), ("alerts", {"messages": 1}),
        ("alerts", alerts_of(messages=1.5)), ("alerts", alerts_of(bytes="1MiB")), ("alerts", alerts_of(age="1")),
    ],
)  # fmt: skip
def test_an_option_of_a_wrong_type_is_a_type_error_that_names_it(all_built: None, name: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"^{name}.* is of the type .*; "):
        check_queue_options({name: value})


@pytest.mark.parametrize("name", LATER_QUEUE_OPTIONS)
def test_an_option_of_a_later_stage_says_so(name: str) -> None:
    text = f"{name} belongs to a later stage of shmq and is not built yet; leave it out"
    with pytest.raises(ValueError, match=text):
        check_queue_options({"maxsize": 1, name: None})


def test_types_know_the_options_that_are_built_and_no_others() -> None:
    assert set(QUEUE_OPTIONS) == set(QueueOptions.__annotations__) == {field.name for field in fields(QueueSettings)}
    assert set(PUT_OPTIONS) == set(PutOptions.__annotations__) == {field.name for field in fields(PutSettings)}
    assert not NOT_BUILT & {*QUEUE_OPTIONS, *PUT_OPTIONS}
    assert set(FIXED_QUEUE_OPTIONS) <= set(QUEUE_OPTIONS)


@pytest.mark.parametrize("kind", [QueueOptions, PutOptions])
def test_the_help_of_options_has_each_with_its_default(kind: type) -> None:
    said = re.findall(r"^    (\w+): ((?:.*\n(?:        .*\n)*))", kind.__doc__ or "", re.MULTILINE)
    assert [name for name, _ in said] == list(kind.__annotations__)
    assert [name for name, text in said if "efault" not in text] == []
    fixed = {name for name, text in said if re.search(r"\bfixed[,;]", text)}
    assert fixed == (set(FIXED_QUEUE_OPTIONS) if kind is QueueOptions else set())


def test_an_unknown_option_is_a_type_error_that_names_the_known_ones() -> None:
    expected = r"a queue has no option 'max_size'; did you mean 'maxsize'\?; known are maxsize, slot_size"
    with pytest.raises(TypeError, match=expected):
        check_queue_options({"max_size": 1})
    with pytest.raises(
        TypeError, match=r"a message has no option 'header'; did you mean 'headers'\?; known are headers"
    ):
        check_put_options({"header": {}})


def test_the_defaults_pass_their_own_checks(all_built: None) -> None:
    assert check_queue_options(as_given(DEFAULTS)) == DEFAULTS
    assert check_broker_options(mode=BROKER_DEFAULTS.mode, patience=BROKER_DEFAULTS.patience) == BROKER_DEFAULTS


def test_the_options_of_a_put_are_taken(all_built: None) -> None:
    options: PutOptions = {
        "headers": {"a": 1}, "priority": 9, "group": "g", "ttl": 5, "delay": 2, "immediate": 0.5
    }  # fmt: skip
    assert check_put_options(options) == PutSettings({"a": 1}, 9, "g", 5.0, 2.0, 0.5)
    assert check_put_options({}) == check_put_options({"headers": None}) == check_put_options({"headers": {}})
    assert check_put_options({}) == PutSettings()


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("priority", 0, 0), ("group", None, None), ("group", "ä" * 127, "ä" * 127),
        ("ttl", None, None), ("ttl", 0, 0.0),
        ("ttl", math.inf, None), ("delay", 0, 0.0), ("immediate", True, 0.0), ("immediate", False, None),
        ("immediate", 0, 0.0),
    ],
)  # fmt: skip
def test_the_ends_of_the_range_of_a_put_option_belong_to_it(all_built: None, name: str, value: Any, taken: Any) -> None:
    assert getattr(check_put_options({name: value}), name) == taken


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("priority", -1), ("priority", 10), ("group", ""), ("group", "ä" * 128), ("group", "\ud800"), ("ttl", -1),
        ("ttl", math.nan), ("delay", -0.1), ("delay", math.inf), ("immediate", -1), ("immediate", 1e9),
    ],
)  # fmt: skip
def test_a_put_option_out_of_range_is_a_value_error_that_names_it(all_built: None, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name}=.*; give "):
        check_put_options({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("priority", None), ("priority", True), ("priority", 4.0), ("group", 7), ("group", b"g"), ("ttl", True),
        ("ttl", "1"), ("delay", None), ("immediate", None), ("immediate", "yes"),
    ],
)  # fmt: skip
def test_a_put_option_of_a_wrong_type_is_a_type_error_that_names_it(all_built: None, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{name}=.* is of the type .*; give "):
        check_put_options({name: value})


@pytest.mark.parametrize("headers", [[("a", 1)], "a=1", 7])
def test_headers_that_are_no_mapping_are_a_type_error(headers: object) -> None:
    with pytest.raises(TypeError, match=r"^headers=.*; give a dict"):
        check_put_options({"headers": headers})


@pytest.mark.parametrize("name", LATER_PUT_OPTIONS)
def test_a_put_option_of_a_later_stage_says_so(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} belongs to a later stage"):
        check_put_options({name: 1})


def test_options_of_a_broker_are_taken() -> None:
    assert check_broker_options() == BrokerSettings()
    settings = check_broker_options(memory="64MiB", mode=0o770, patience=1)
    assert settings == BrokerSettings(64 * 2**20, 0o770, 1.0)
    assert check_broker_options(memory=2**23, patience=0.001) == BrokerSettings(2**23, None, 0.001)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memory", 2**23 - 1), ("memory", 2**38 + 1),
        ("memory", "1MB"), ("memory", "much"), ("mode", 770), ("mode", 0o077), ("mode", 0o600),
        ("mode", -1), ("mode", 0o1777), ("patience", 0), ("patience", 60.1), ("patience", math.inf),
        pytest.param("mode", 10**5000, id="huge"),
        ("patience", math.nan), ("patience", -1),
    ],
)  # fmt: skip
def test_an_option_of_a_broker_out_of_range_is_a_value_error(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name}=.*; give "):
        check_broker_options(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("memory", 1e9), ("mode", "770"), ("mode", True), ("patience", "1"), ("patience", True)]
)
def test_an_option_of_a_broker_of_a_wrong_type_is_a_type_error(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{name}.*; give "):
        check_broker_options(**{name: value})


@pytest.mark.parametrize(("name", "value"), [("durability", "none")])
def test_an_option_of_a_broker_of_a_later_stage_says_so(name: str, value: Any) -> None:
    assert check_broker_options(**{name: None}) == BrokerSettings()
    with pytest.raises(ValueError, match=f"^{name} belongs to a later stage"):
        check_broker_options(**{name: value})
