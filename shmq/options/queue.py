"""Options of a queue, as users give them and as they read them. The table of all is tools/options.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from shmq.alerts import Alerts
from shmq.names import check_queue_name
from shmq.options.option import Kind, Option
from shmq.options.queue_table import QUEUE_TABLE, QueueOptions, QueueSettings
from shmq.options.stage import LATER_QUEUE_OPTIONS, NOT_BUILT, not_built, unknown
from shmq.options.value import NEVER, Size, check_bool, check_choice, check_int, check_seconds, parse_size, shown

__all__ = [
    "DEFAULTS",
    "FIXED_QUEUE_OPTIONS",
    "OVERFLOWS",
    "QUEUE_OPTIONS",
    "QueueOptions",
    "QueueSettings",
    "as_given",
    "check_queue_options",
]

_BY_NAME: Final = {option.name: option for option in QUEUE_TABLE}
QUEUE_OPTIONS: Final = tuple(_BY_NAME)
FIXED_QUEUE_OPTIONS: Final = tuple(option.name for option in QUEUE_TABLE if option.fixed)
OVERFLOWS: Final = _BY_NAME["overflow"].choices
# In force where nobody gave another. dead_letter has none: it is made from the queue's name.
_NONE: Final = {option.name: option.default for option in QUEUE_TABLE}
DEFAULTS: Final = QueueSettings(**{option.name: option.default for option in QUEUE_TABLE})


def _check_count(value: object, option: Option) -> int:
    return check_int(value, option.name, int(option.least), option.most, option.remedy)


def _check_size(value: object, option: Option) -> int:
    size = parse_size(cast(Size, value), option.name)
    if not option.least <= size <= option.most or size % option.step:
        raise ValueError(f"{option.name}={shown(value)} is out of range; {option.remedy}")
    return size


def _check_switch(value: object, option: Option) -> bool:
    return check_bool(value, option.name)


def _check_choice(value: object, option: Option) -> str:
    if option.may_be_none:
        return check_choice(value, option.name, option.choices[1:], none=option.choices[0])
    return check_choice(value, option.name, option.choices)


def _check_seconds(value: object, option: Option) -> float:
    return check_seconds(value, option.name, option.remedy, positive=option.least > 0)


def _check_name(value: object, option: Option) -> str:
    target = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(target, str) or isinstance(value, type):
        raise TypeError(f"{option.name}={shown(value)} is of the type {type(value).__name__}; {option.remedy}")
    try:
        check_queue_name(target)
    except ValueError as error:
        raise ValueError(f"{option.name}: {error}") from None
    return target


def _check_delays(value: object, option: Option) -> tuple[float, ...]:
    steps = value if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray) else (value,)
    if not option.least <= len(steps) <= option.most:
        raise ValueError(f"{option.name}={shown(value)} has {len(steps)} steps; {option.remedy}")
    delays = tuple(check_seconds(step, option.name, option.remedy) for step in steps)
    if NEVER in delays:
        raise ValueError(f"{option.name}={shown(value)} is out of range; {option.remedy}")
    return delays


def _check_alerts(value: object, option: Option) -> tuple[float, ...]:
    if not isinstance(value, Alerts):
        raise TypeError(f"{option.name}={shown(value)} is of the type {type(value).__name__}; {option.remedy}")
    most = 1 << 40
    counts = {name: getattr(value, name) for name in ("messages", "bytes", "message_bytes")}
    checked = [
        0 if count is None else check_int(count, f"{option.name}: {name}", 1, most, option.remedy)
        for name, count in counts.items()
    ]
    age = 0.0 if value.age is None else check_seconds(value.age, f"{option.name}: age", option.remedy, positive=True)
    remedy = "give seconds above 0"
    return *checked, age, check_seconds(value.repeat, f"{option.name}: repeat", remedy, positive=True)


def _alerts(values: Sequence[float]) -> Alerts:
    messages, size, message_size, age, repeat = values
    return Alerts(int(messages) or None, int(size) or None, int(message_size) or None, age or None, repeat)


_CHECKS: Final[Mapping[Kind, Callable[[object, Option], Any]]] = {
    "count": _check_count,
    "size": _check_size,
    "switch": _check_switch,
    "choice": _check_choice,
    "seconds": _check_seconds,
    "name": _check_name,
    "delays": _check_delays,
    "alerts": _check_alerts,
}
_NOTHING_GIVEN: Final = QueueSettings()


def check_queue_options(options: Mapping[str, object] | QueueOptions) -> QueueSettings:
    """Options of a queue, each checked for type and range; those not given stay None.

    Raises TypeError for an unknown option or a wrong type, ValueError for one out of range or of a later stage.
    """
    if not options:
        return _NOTHING_GIVEN
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name in NOT_BUILT and name in LATER_QUEUE_OPTIONS:
            raise not_built(name)
        option = _BY_NAME.get(name)
        if option is None:
            raise unknown(name, "a queue", QUEUE_OPTIONS)
        is_default = value is None and option.may_be_none
        given[name] = option.default if is_default else _CHECKS[option.kind](value, option)
    return QueueSettings(**given)


def as_given(settings: QueueSettings) -> QueueOptions:
    """Settings as a user writes them; those that are None stay out."""
    options: dict[str, Any] = {}
    for option in QUEUE_TABLE:
        value = getattr(settings, option.name)
        if value is None:
            continue
        if option.may_be_none and value == option.default:
            value = None
        elif option.kind == "delays" and len(value) == 1:
            value = value[0]
        elif option.kind == "alerts":
            value = _alerts(value)
        options[option.name] = value
    return cast(QueueOptions, options)
