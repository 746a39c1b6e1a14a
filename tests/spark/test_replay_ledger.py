"""Replays remember files: those that were begun are done again under the same key, those that are done are left out."""

from __future__ import annotations

from pathlib import Path

import pytest

import shmq
from shmq.spark.pipelines.replay_ledger import Ledger


def test_a_file_is_new_until_a_replay_begins_with_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "queue-1")
    with ledger.turn():
        assert ledger.new(["b", "a"]) == ["a", "b"]
        entry = ledger.begin(["b", "a"])
        assert ledger.new(["c", "b", "a"]) == ["c"]
        assert ledger.pending() == [entry]
        ledger.finish(entry)
        assert (ledger.pending(), ledger.new(["a"])) == ([], [])


def test_a_replay_that_died_is_gone_on_with_under_the_same_key(tmp_path: Path) -> None:
    first = Ledger(tmp_path, "queue-1")
    with first.turn():
        begun = first.begin(["a"])
    (again,) = Ledger(tmp_path, "queue-1").pending()
    assert again == begun
    with first.turn():
        assert first.begin(["a"]).key == begun.key


def test_other_queues_and_conditions_are_other_replays(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "queue-1", "true")
    with ledger.turn():
        begun = ledger.begin(["a"])
        for other in (Ledger(tmp_path, "queue-2", "true"), Ledger(tmp_path, "queue-1", "")):
            assert other.new(["a"]) == ["a"]
            assert other.begin(["a"]).key != begun.key


def test_two_replays_of_an_archive_do_not_run_at_once(tmp_path: Path) -> None:
    with Ledger(tmp_path, "queue-1").turn():
        with pytest.raises(shmq.ShmqError, match=r"another replay of .* is running"):
            with Ledger(tmp_path, "queue-2").turn():
                pass
