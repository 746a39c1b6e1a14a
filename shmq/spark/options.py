"""The options of the format: texts whose names do not mind case, checked before anything is read or written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shmq.errors import SelectorError
from shmq.names import check_queue_name, parse_broker_path
from shmq.options.value import parse_size
from shmq.spark.bounds import positions_of, times_of
from shmq.spark.gateway.address import Address, parse_uris
from shmq.spark.option_names import FROM_SPARK, IN_SQL, SINK, SOURCE, check_names

__all__ = ["FAILFAST", "NO_QUEUE", "PLACES", "SinkOptions", "SourceOptions", "addresses_of", "remote_texts"]

_TRUE: Final = {"true": True, "false": False}
# Which the hosts are, and what lies on them: no gateway takes it from its caller.
PLACES: Final = frozenset({"path", "location", "uri", "tokenfile", "cafile", "distribution", "encryptionkeyfile"})
_HERE: Final = frozenset({"minrowsperbatch", "maxbatchdelay", "schema", "mode"})  # which a gateway has no part in
FAILFAST: Final = "FAILFAST"
NO_QUEUE: Final = "spark.routed"  # has the notes of writes whose rows all name their queue
_MODES: Final = ("PERMISSIVE", FAILFAST)
_DISTRIBUTIONS: Final = ("roundrobin", "group")


class _Given:
    """The options as they were given. Each that is read is taken out, so those that are left are unknown."""

    def __init__(self, options: Mapping[str, str], known: frozenset[str]) -> None:
        check_names(options, known)
        self._texts = {name.lower(): text for name, text in options.items()}

    def text(self, name: str) -> str | None:
        return self._texts.get(name.lower())

    def required(self, name: str, example: str) -> str:
        found = self.text(name)
        if not found:
            none = "" if self._texts else f". {IN_SQL}"
            raise ValueError(f"the option {name} is missing; give .option({name!r}, {example!r}){none}")
        return found

    def number(self, name: str, least: int, default: int | None) -> int | None:
        found: int | None = self._parsed(
            name, default, f"a whole number from {least} on", lambda text: _at_least(int(text), least)
        )
        return found

    def seconds(self, name: str, default: float | None, unit: float = 1.0) -> float | None:
        found: float | None = self._parsed(
            name, default, "a number from 0 on", lambda text: _at_least(float(text) * unit, 0)
        )
        return found

    def size(self, name: str, default: int | None) -> int | None:
        found: int | None = self._parsed(
            name, default, "a size, such as 32MiB", lambda text: _at_least(parse_size(text, name), 1)
        )
        return found

    def truth(self, name: str, default: bool) -> bool:
        found: bool = self._parsed(name, default, "true or false", lambda text: _TRUE[text.strip().lower()])
        return found

    def _parsed(self, name: str, default: Any, wanted: str, parse: Callable[[str], Any]) -> Any:
        text = self.text(name)
        if text is None or not text.strip():
            return default
        try:
            return parse(text)
        except (ValueError, KeyError, OverflowError):
            raise ValueError(f"option {name}={text!r}: {wanted} is expected") from None


def _at_least(value: Any, least: int) -> Any:
    if not value >= least:  # so also for NaN
        raise ValueError
    return value


def _names(text: str) -> tuple[str, ...]:
    """Parses names of queues: one, several with commas between, or a JSON list for names with commas in them."""
    try:
        names = json.loads(text) if text.lstrip().startswith("[") else [name.strip() for name in text.split(",")]
    except json.JSONDecodeError as error:
        raise ValueError(f"option queue={text!r} is not a JSON list: {error}") from None
    for name in names:
        check_queue_name(name)
    if len(set(names)) != len(names):
        raise ValueError(f"option queue={text!r}: a queue is named twice")
    return tuple(names)


def _place(given: _Given) -> str:
    """Returns the broker's directory; "": gateways are named, see addresses_of()."""
    if given.text("uri"):
        if given.text("path"):
            raise ValueError(
                "the options path and uri are both given; path is a broker of this host, uri names gateways"
            )
        if given.text("encryptionKeyFile"):
            raise ValueError("the option encryptionKeyFile goes with path; a gateway has its broker's key itself")
        return ""
    for name in ("tokenFile", "caFile", "distribution"):
        if given.text(name):
            raise ValueError(f"the option {name} goes with gateways, and no uri is given")
    return parse_broker_path(given.required("path", "/var/lib/shop"))


def _key_file(given: _Given) -> str | None:
    """Returns the absolute path of the key file, for tasks may have another working directory."""
    text = given.text("encryptionKeyFile")
    return os.path.abspath(text) if text else None


def addresses_of(options: Mapping[str, str]) -> tuple[Address, ...]:
    """Returns the gateways that the option uri names; none: the broker is on this host. Raises ValueError."""
    given = {name.lower(): text for name, text in options.items()}
    if not given.get("uri"):
        return ()
    files = given.get("tokenfile"), given.get("cafile")
    return tuple(Address(uri, *files) for uri in parse_uris(given["uri"]))


def remote_texts(options: Mapping[str, str], **more: str) -> dict[str, str]:
    """Returns the options for a gateway: all but those that say where it is, and `more`."""
    here = {*PLACES, *_HERE, *FROM_SPARK}
    return {name.lower(): text for name, text in options.items() if name.lower() not in here} | more


def _selector(text: str | None) -> str | None:
    """Checks the selector where it is given: a task would find its faults later."""
    if text is not None:
        from shmq.selector.parser import parse

        try:
            parse(text)
        except SelectorError as error:
            raise ValueError(f"option selector: {error}") from None
    return text


def _pattern(given: _Given) -> str | None:
    text = given.text("subscribePattern")
    if text is None:
        return None
    if given.text("queue"):
        raise ValueError("the options queue and subscribePattern are both given; one of them says what is read")
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"option subscribePattern={text!r}: no regular expression of Python: {error}") from None
    return text


def _least_rows(given: _Given) -> int | None:
    least, most = given.number("minRowsPerBatch", 1, None), given.number("maxRowsPerBatch", 1, None)
    if least is None:
        if given.text("maxBatchDelay"):
            raise ValueError("the option maxBatchDelay goes with minRowsPerBatch, and none is given")
        return None
    if most is not None and least > most:
        raise ValueError(f"option minRowsPerBatch={least}: a batch has at most maxRowsPerBatch={most} rows")
    if given.text("selector"):
        raise ValueError(
            "the option minRowsPerBatch does not go with a selector: messages that it leaves wait, too, and would count"
        )
    return least


def _mode(given: _Given) -> str | None:
    text = given.text("mode")
    if text is None:
        return None
    if text.upper() not in _MODES:
        raise ValueError(f"option mode={text!r}: {' or '.join(_MODES)} is expected")
    return text.upper()


def _columns(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))


def _distribution(given: _Given) -> str:
    found = (given.text("distribution") or _DISTRIBUTIONS[0]).lower()
    if found not in _DISTRIBUTIONS:
        raise ValueError(f"option distribution={found!r}: {' or '.join(_DISTRIBUTIONS)} is expected")
    return found


@dataclass(frozen=True)
class SourceOptions:
    """The options of spark.read and spark.readStream.

    Arguments:
        path: of the broker's directory, or its URL; "": gateways are named.
        queues: whose entries are read; none: a pattern is given.
        pattern: all queues are read whose whole name it matches; None: queues are given.
        subscription: of a stream; one query at a time has it. None: not given.
        selector: only messages for which it is true.
        max_rows, max_bytes: of a batch of a stream; None: no limit of this kind.
        max_partition_bytes: what one task reads, about.
        min_partitions: so many tasks, if there are rows enough.
        poll: seconds that a stream's planner waits for the first entry.
        fail_on_data_loss: entries that vanished are an error.
        positions: of a batch read: of each queue the first, and the one behind the last; "": of the only queue.
        times: of a batch read: when the first may have been put, and from when on none, in microseconds of the epoch.
        least_rows: of a batch of a stream, unless one has waited for max_delay seconds; None: one.
        body: schema of the body's JSON, as DDL of Spark; None: a body is bytes.
        mode: a body that does not fit its schema is an error, or NULL and in another column; None: not given.
        columns: of an entry, in their order; None: all.
        pushdown: of a batch read: filters of queue and position are applied by the source.
        key_file: with the key of what the broker has on disk; None: it has none.
    """

    path: str
    queues: tuple[str, ...]
    pattern: str | None
    subscription: str | None
    selector: str | None
    max_rows: int | None
    max_bytes: int | None
    max_partition_bytes: int
    min_partitions: int
    poll: float
    fail_on_data_loss: bool
    positions: Mapping[str, tuple[int, int]]
    times: tuple[int, int]
    least_rows: int | None
    max_delay: float
    body: str | None
    mode: str | None
    columns: tuple[str, ...] | None
    pushdown: bool
    key_file: str | None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Raises ValueError that names the option and what is expected."""
        given = _Given(options, SOURCE)
        table = given.text("table")
        if table not in (None, "entries"):
            raise ValueError(f"option table={table!r}: 'entries' is the only table there is yet")
        maximum = given.size("maxPartitionBytes", 32 << 20)
        least = given.number("minPartitions", 1, len(os.sched_getaffinity(0)))
        poll = given.seconds("pollMs", 0.1, unit=1e-3)
        delay = given.seconds("maxBatchDelay", 900.0)
        pattern = _pattern(given)
        queues = () if pattern is not None else _names(given.required("queue", "orders"))
        assert delay is not None
        assert maximum is not None
        assert least is not None
        assert poll is not None
        return cls(
            path=_place(given),
            queues=queues,
            pattern=pattern,
            subscription=given.text("subscription"),
            selector=_selector(given.text("selector")),
            max_rows=given.number("maxRowsPerBatch", 1, None),
            max_bytes=given.size("maxBytesPerBatch", None),
            max_partition_bytes=maximum,
            min_partitions=least,
            poll=poll,
            fail_on_data_loss=given.truth("failOnDataLoss", True),
            positions=positions_of(given.text("startingPosition"), given.text("endingPosition"), queues),
            times=times_of(given.text("startingTimestamp"), given.text("endingTimestamp")),
            least_rows=_least_rows(given),
            max_delay=delay,
            body=given.text("schema") or None,
            mode=_mode(given),
            columns=_columns(given.text("columns")),
            pushdown=given.truth("pushdown", False),
            key_file=_key_file(given),
        )


@dataclass(frozen=True)
class SinkOptions:
    """The options of df.write and df.writeStream.

    Arguments:
        path: of the broker's directory, or its URL; "": gateways are named.
        queue: into which the rows go that name none; its notes decide. NO_QUEUE: not given, so each row names one.
        stage_ttl: seconds after which staged rows that nobody published are deleted.
        commit_timeout: seconds that a commit waits for room in the queue; None: for ever.
        idempotency_key: of a batch write: a second one with the same key publishes nothing. None: a random one.
        idempotency_version: of writes with one key: each has a larger one than those before; 0: the key has one write.
        truncate: mode("overwrite") is meant: what is ready in the queue is purged when the batch is published.
        by_group: of several hosts, rows of one group go to the same one; False: in turn.
        key_file: with the key of what the broker has on disk; None: it has none.
        most_stages: of a gateway: so many staging queues may lie there undecided; None: no limit.
    """

    path: str
    queue: str
    stage_ttl: float
    commit_timeout: float | None
    idempotency_key: str | None
    idempotency_version: int
    truncate: bool
    by_group: bool
    key_file: str | None
    most_stages: int | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SinkOptions:
        """Raises ValueError that names the option and what is expected."""
        given = _Given(options, SINK)
        names = _names(given.text("queue") or NO_QUEUE)
        if len(names) != 1:
            raise ValueError(f"option queue: rows are written into one queue, not into {len(names)}")
        ttl = given.seconds("stageTtl", 86_400.0)
        assert ttl is not None
        if ttl < 1:
            raise ValueError(f"option stageTtl={ttl:g}: 1 second is the least; a stage must outlive its batch")
        version, key = given.number("idempotencyVersion", 0, None), given.text("idempotencyKey") or None
        if version is not None and not key:
            raise ValueError("the option idempotencyVersion goes with an idempotencyKey, and none is given")
        return cls(
            path=_place(given),
            queue=names[0],
            stage_ttl=ttl,
            commit_timeout=given.seconds("commitTimeout", 300.0),
            idempotency_key=key,
            idempotency_version=version or 0,
            truncate=given.truth("truncate", False),
            by_group=_distribution(given) == "group",
            key_file=_key_file(given),
        )
