"""Options: sizes, durations, and the check of each option's type, range and stage."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmq.options import (
    BROKER_DEFAULTS,
    CORE_QUEUE_OPTIONS,
    DEFAULTS,
    LATER_PUT_OPTIONS,
    LATER_QUEUE_OPTIONS,
    BrokerSettings,
    PutOptions,
    QueueOptions,
    QueueSettings,
    check_broker_options,
    check_put_options,
    check_queue_options,
    check_timeout,
    parse_size,
)

UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "": 1}
HUGE = pytest.param(10**5000, id="huge")  # pytest could not write it as text


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
    with pytest.raises(TypeError, match=r"^timeout is of the type .*; give seconds"):
        check_timeout(given)


def test_options_that_are_not_given_stay_none() -> None:
    assert check_queue_options({}) == QueueSettings()
    assert set(vars_of(QueueSettings()).values()) == {None}


def vars_of(settings: QueueSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in CORE_QUEUE_OPTIONS}


def test_all_options_of_a_queue_are_taken() -> None:
    options: QueueOptions = {
        "maxsize": 10,
        "slot_size": "1KiB",
        "temporary": True,
        "max_deliveries": 0,
        "max_deaths": 65_535,
        "checksum": False,
        "dead_letter": "graveyard",
    }
    assert set(options) == set(CORE_QUEUE_OPTIONS)
    assert check_queue_options(options) == QueueSettings(10, 1024, True, 0, 65_535, False, "graveyard")


def test_a_queue_may_stand_for_its_name_as_dead_letter() -> None:
    assert check_queue_options({"dead_letter": Target("graveyard")}).dead_letter == "graveyard"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxsize", 0), ("maxsize", 2**24), ("slot_size", 128), ("slot_size", 4096), ("slot_size", 192),
        ("max_deliveries", 65_535), ("max_deaths", 0),
    ],
)  # fmt: skip
def test_the_ends_of_a_range_belong_to_it(name: str, value: int) -> None:
    assert getattr(check_queue_options({name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("maxsize", 10**5000, id="huge"),
        ("maxsize", -1), ("maxsize", 2**24 + 1), ("slot_size", 64), ("slot_size", 4160),
        ("slot_size", 200), ("slot_size", "big"), ("max_deliveries", -1), ("max_deliveries", 65_536),
        ("max_deaths", -1), ("max_deaths", 65_536), ("dead_letter", ""), ("dead_letter", "a/b"),
        ("dead_letter", Target("a/b")),
    ],
)  # fmt: skip
def test_an_option_out_of_range_is_a_value_error_that_names_it(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name}[=:].*; "):
        check_queue_options({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxsize", None), ("maxsize", 1.0), ("maxsize", True), ("maxsize", "5"), ("slot_size", 128.0),
        ("temporary", 1), ("temporary", None), ("checksum", "yes"), ("max_deliveries", False), ("max_deaths", 3.0),
        ("dead_letter", None), ("dead_letter", b"q"), ("dead_letter", Target(7)), ("dead_letter", Target),
    ],
)  # fmt: skip
def test_an_option_of_a_wrong_type_is_a_type_error_that_names_it(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"^{name}.* is of the type .*; "):
        check_queue_options({name: value})


@pytest.mark.parametrize("name", LATER_QUEUE_OPTIONS)
def test_an_option_of_a_later_stage_says_so(name: str) -> None:
    text = f"{name} belongs to a later stage of shmq and is not built yet; leave it out"
    with pytest.raises(ValueError, match=text):
        check_queue_options({"maxsize": 1, name: None})


def test_the_stages_of_the_options_are_those_of_the_published_surface() -> None:
    later = "max_bytes overflow priorities groups last_value sort_by retry_delay max_ttl dead_letter_expired lease"
    assert LATER_QUEUE_OPTIONS == (*later.split(), "live_consumers", "expires", "max_memory", "alerts", "durability")
    assert LATER_PUT_OPTIONS == ("priority", "group", "ttl", "delay", "immediate", "durability")


def test_an_unknown_option_is_a_type_error_that_names_the_known_ones() -> None:
    with pytest.raises(TypeError, match="a queue has no option 'max_size'; known are maxsize, slot_size"):
        check_queue_options({"max_size": 1})
    with pytest.raises(TypeError, match="a message has no option 'header'; known are headers"):
        check_put_options({"header": {}})


def test_the_defaults_pass_their_own_checks() -> None:
    options = {name: value for name, value in vars_of(DEFAULTS).items() if value is not None}
    assert set(CORE_QUEUE_OPTIONS) - set(options) == {"dead_letter"}
    assert check_queue_options(options) == DEFAULTS
    assert check_broker_options(mode=BROKER_DEFAULTS.mode, patience=BROKER_DEFAULTS.patience) == BROKER_DEFAULTS


def test_the_headers_of_a_put_are_handed_on() -> None:
    options: PutOptions = {"headers": {"a": 1}}
    assert check_put_options(options) == {"a": 1}
    assert check_put_options({}) is None
    assert check_put_options({"headers": None}) is None
    assert check_put_options({"headers": {}}) is None


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


@pytest.mark.parametrize(("name", "value"), [("disk", 0), ("durability", "none"), ("encryption_key", b"")])
def test_an_option_of_a_broker_of_a_later_stage_says_so(name: str, value: Any) -> None:
    assert check_broker_options(**{name: None}) == BrokerSettings()
    with pytest.raises(ValueError, match=f"^{name} belongs to a later stage"):
        check_broker_options(**{name: value})
