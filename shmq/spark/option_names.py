"""Names of options: those that there are, and what is meant by those of other sources."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["FROM_SPARK", "IN_SQL", "SINK", "SOURCE", "check_names"]

IN_SQL: Final = (
    "Spark hands the options of a table in its catalog to no source in Python when that is read or written: CREATE "
    "TEMPORARY VIEW name USING shmq OPTIONS (path '...', queue '...') keeps them; or name them with each use of a "
    "table that has none, FROM name WITH (path = '...', queue = '...')"
)
_OF_TABLE: Final = "option."  # how they come when a table is made

FROM_SPARK: Final = frozenset({"checkpointlocation", "queryname", "outputmode"})  # Spark hands them on

SOURCE: Final = frozenset({
    "path", "queue", "subscribePattern", "table", "subscription", "selector", "startingPosition", "endingPosition",
    "startingTimestamp", "endingTimestamp", "minRowsPerBatch", "maxBatchDelay", "maxRowsPerBatch", "maxBytesPerBatch",
    "maxPartitionBytes", "minPartitions", "pollMs", "failOnDataLoss", "columns", "schema", "mode", "pushdown",
    "uri", "tokenFile", "caFile", "encryptionKeyFile",
})  # fmt: skip
SINK: Final = frozenset({
    "path", "queue", "stageTtl", "commitTimeout", "idempotencyKey", "idempotencyVersion", "truncate",
    "uri", "tokenFile", "caFile", "distribution", "encryptionKeyFile",
})  # fmt: skip

# Names of other systems for the same, in lower case.
_LIKE: Final[Mapping[str, str]] = {
    "kafka.bootstrap.servers": "path",
    "bootstrap.servers": "path",
    "host": "uri",
    "port": "uri",
    "subscribe": "queue",
    "assign": "queue",
    "topic": "queue",
    "topics": "queue",
    "topicspattern": "subscribePattern",
    "groupidprefix": "subscription",
    "kafka.group.id": "subscription",
    "group.id": "subscription",
    "consumergroup": "subscription",
    "startingoffsets": "startingPosition",
    "startingoffset": "startingPosition",
    "endingoffsets": "endingPosition",
    "endingoffset": "endingPosition",
    "startingoffsetsbytimestamp": "startingTimestamp",
    "endingoffsetsbytimestamp": "endingTimestamp",
    "maxoffsetspertrigger": "maxRowsPerBatch",
    "maxfilespertrigger": "maxRowsPerBatch",
    "maxbytespertrigger": "maxBytesPerBatch",
    "maxrecordsperpartition": "maxPartitionBytes",
    "minoffsetspertrigger": "minRowsPerBatch",
    "maxtriggerdelay": "maxBatchDelay",
    "kafkaconsumer.polltimeoutms": "pollMs",
    "includeheaders": "columns",
    "filter": "selector",
    "where": "selector",
    "columnnameofcorruptrecord": "mode",
    "txnappid": "idempotencyKey",
    "txnversion": "idempotencyVersion",
}


def check_names(given: Iterable[str], known: frozenset[str]) -> None:
    """Spark hands names on in lower case. Raises ValueError with the nearest known name, and then all of them."""
    lower = {name.lower() for name in known}
    given = list(given)
    if any(name.lower().startswith(_OF_TABLE) for name in given):
        raise ValueError(f"CREATE TABLE with options makes no table of format shmq that can be used. {IN_SQL}")
    for name in given:
        if name.lower() not in lower and name.lower() not in FROM_SPARK:
            raise ValueError(_unknown(name, known))


def _unknown(name: str, known: frozenset[str]) -> str:
    for of, here, others in (("a write", "a read", SINK), ("a read", "a write", SOURCE)):
        for other in others - known:
            if other.lower() == name.lower():
                return f"the option {other} is of {of}, and this is {here}; leave it out"
    near = _nearest(name.lower(), known)
    hint = f"did you mean {near}?; " if near else ""
    if not near and name.lower().startswith("kafka."):
        hint = "it is of Kafka's client, so leave it out; "
    return f"there is no option {name!r} of format shmq; {hint}there are: {', '.join(sorted(known))}"


def _nearest(name: str, known: frozenset[str]) -> str | None:
    like = {one.lower(): one for one in known} | {other: one for other, one in _LIKE.items() if one in known}
    near = difflib.get_close_matches(name, like, 1)
    return like[near[0]] if near else None
