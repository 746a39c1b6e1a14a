"""Sources and sinks beside a broker that encrypts what it has on disk, in processes that have not opened it before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import shmq
from shmq.spark.options import SinkOptions, SourceOptions
from tests.engine.child import Child

COUNT = 3000

SOURCE = """
from shmq.spark.options import SourceOptions
from shmq.spark.stream_source import Limit, StreamSource
given = {"path": sys.argv[1], "queue": "orders", "subscription": "etl", "pollMs": "0"}
if sys.argv[2]:
    given["encryptionKeyFile"] = sys.argv[2]
try:
    source = StreamSource(SourceOptions.parse(given))
    start = source.initialOffset()
    end = source.latestOffset(start, Limit())
    source.commit(end)
    say("taken")
    source.close()
except shmq.OptionsMismatch as error:
    say(error)
"""


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(b"k" * 32)
    return path


@pytest.fixture
def orders(broker_dir: Path, key_file: Path) -> Iterator[shmq.Queue[bytes]]:
    with shmq.open(broker_dir, memory="16MiB", disk="8GiB", encryption_key=key_file) as broker:
        queue = broker.queue("orders", max_memory=20_000, codec="bytes")
        for number in range(COUNT):
            queue.put(b"%050d" % number)
        assert queue.statistics().flowed
        yield queue


def test_a_source_takes_what_is_on_disk_with_the_key_that_its_option_names(
    orders: shmq.Queue[bytes], broker_dir: Path, key_file: Path
) -> None:
    with Child(SOURCE, str(broker_dir), str(key_file)) as child:
        assert child.line() == "taken"
        child.end()
    assert orders.qsize() == 0


def test_a_source_without_the_key_is_told_its_option(orders: shmq.Queue[bytes], broker_dir: Path) -> None:
    with Child(SOURCE, str(broker_dir), "") as child:
        assert "option encryptionKeyFile" in child.line()
        child.end()
    assert orders.qsize() == COUNT


def test_a_key_goes_with_a_broker_of_this_host(key_file: Path) -> None:
    given = {"uri": "shmq://localhost:1", "queue": "orders", "encryptionKeyFile": str(key_file)}
    for parse in SourceOptions.parse, SinkOptions.parse:
        with pytest.raises(ValueError, match="encryptionKeyFile goes with path"):
            parse(given)
    assert SinkOptions.parse({"path": "/x", "queue": "orders", "encryptionKeyFile": "k"}).key_file == str(
        Path("k").absolute()
    )
