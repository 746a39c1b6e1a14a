"""An option that there is not: the error names the nearest one first, also for who knows another source."""

from __future__ import annotations

import pytest

from shmq.spark.option_names import SINK, SOURCE, check_names


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("maxOffsetsPerTrigger", "maxRowsPerBatch"),
        ("minOffsetsPerTrigger", "minRowsPerBatch"),
        ("maxTriggerDelay", "maxBatchDelay"),
        ("maxOffsetPerTriger", "maxRowsPerBatch"),  # a slip in a name of Kafka's
        ("subscribe", "queue"),
        ("kafka.bootstrap.servers", "path"),
        ("kafka.group.id", "subscription"),
        ("startingOffsets", "startingPosition"),
        ("endingOffsetsByTimestamp", "endingTimestamp"),
        ("includeHeaders", "columns"),
        ("subscribepatern", "subscribePattern"),
        ("SUBSCRIPTON", "subscription"),
    ],
)
def test_the_nearest_name_comes_first_and_then_all(name: str, near: str) -> None:
    with pytest.raises(ValueError) as caught:
        check_names([name], SOURCE)
    assert str(caught.value) == (
        f"there is no option {name!r} of format shmq; did you mean {near}?; there are: {', '.join(sorted(SOURCE))}"
    )


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("topic", "queue"),
        ("txnAppId", "idempotencyKey"),
        ("txnVersion", "idempotencyVersion"),
        ("kafka.bootstrap.servers", "path"),
    ],
)
def test_so_for_a_write(name: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' of format shmq; did you mean {near}"):
        check_names([name], SINK)


def test_a_name_without_a_like_has_the_list() -> None:
    with pytest.raises(ValueError, match=r"'zzz' of format shmq; there are: caFile, columns"):
        check_names(["zzz"], SOURCE)
    with pytest.raises(ValueError, match=r"of Kafka's client, so leave it out; there are: "):
        check_names(["kafka.ssl.truststore.location"], SOURCE)


@pytest.mark.parametrize("name", ["PATH", "maxrowsperbatch", "checkpointLocation", "queryName"])
def test_known_names_and_those_that_spark_hands_on_pass_in_any_case(name: str) -> None:
    check_names([name], SOURCE)
