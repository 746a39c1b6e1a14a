"""shmq bench ratios, with tables of a few rows: what it measures, and that it finds what costs too much."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shmq.bench.ratios.measure import RUNS, measure_ratios
from shmq.bench.ratios.scene import Scene
from shmq.bench.ratios.table import read_rows
from shmq.bench.ratios.verbs import VERBS, Verb
from tests.repo.tree import ROOT

LOOSE = 1000  # times as much: for what is measured beside other tests


def bench(table: Path, rows: str, *arguments: str, expected: int = 0) -> subprocess.CompletedProcess[str]:
    table.write_text(rows)
    command = [sys.executable, "-m", "shmq", "bench", "ratios", "--table", str(table), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == expected, done.stderr
    return done


def found(table: Path, rows: str, *arguments: str, expected: int = 0) -> list[dict[str, Any]]:
    done = bench(table, rows, "--json", *arguments, expected=expected)
    every: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return every


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "rows.toml"


def test_every_verb_has_rows_and_every_row_a_name_of_its_own() -> None:
    rows = read_rows()
    assert {verb for row in rows for verb in row.verbs} == set(VERBS)
    assert len({row.name for row in rows}) == len(rows) > 40
    assert [row.name for row in rows if row.situations[0] == row.situations[1] and row.verbs[0] == row.verbs[1]] == []
    assert 0 < sum(row.on_demand for row in rows) < len(rows) / 2


def test_the_page_shows_each_row() -> None:
    page = (ROOT / "bench" / "README.md").read_text()
    shown = re.findall(r"^\| `([\w.-]+)`( \*)? \|", page, re.MULTILINE)
    assert shown == [(row.name, " *" * row.on_demand) for row in read_rows()]


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_each_verb_is_measured_in_a_small_scene(table: Path, verb: str) -> None:
    sleepers = "sleepers = 1, depth = 0, " if verb in {"wake", "idle"} else ""
    table.write_text(f'[{verb}]\nsmall = {{ both = {{ {sleepers}memory = "32MiB" }}, at_most = {LOOSE} }}\n')
    (row,) = measure_ratios(read_rows(table))
    assert (row.verdict, row.runs) == ("ok", 1)
    assert row.baseline > 0
    assert row.factor is not None
    assert row.factor > 0


SITUATIONS = [
    "depth = 5_000",
    "depth = 9_000, memory = '16MiB'",  # of which half flow to disk
    "size = 5_000, elsewhere = true",
    "size = 5_000, copied = 5_000",
    "delayed = 50, held = 50",
    "back = 200, passed = 2_000",
    "back = 200, passed = 2_000, came_by = 'retry'",
    "back = 200, passed = 2_000, came_by = 'delay'",
    "consumers = 20, selector = true, queues = 5, members = 2",
    "queue = { groups = 'shared' }, options = { group = 'a' }, held = 50",
    "codec = 'json', body = { id = 7 }, options = { headers = { k = 1 }, ttl = 60 }",
]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_kind_of_situation_can_be_made(table: Path, situation: str) -> None:
    table.write_text(f"[get]\nrow = {{ {situation}, at_most = {LOOSE} }}\n")
    (row,) = measure_ratios(read_rows(table))
    assert row.verdict == "ok"


def test_a_table_shows_cost_factor_and_verdict_of_each_row(table: Path) -> None:
    rows = f"""[put]
    flat = {{ size = 32, at_most = {LOOSE} }}
    near = {{ size = 32, at_most = {LOOSE}, goal = {LOOSE - 1} }}
    [get]
    far = {{ size = 32, at_most = {LOOSE}, goal = 0.001 }}
    dear = {{ size = 32, at_most = {LOOSE}, on_demand = true }}
    """
    done = bench(table, rows)
    cells = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in done.stdout.splitlines() if "│" in line}
    verdicts = {name: of[-1].strip() for name, of in cells.items()}
    assert verdicts == {"put.flat": "ok", "put.near": "reached", "get.far": "open"}
    assert all(float(of[2]) > 0 for of in cells.values())
    assert "3 of 3: get.far" in done.stderr
    every = found(table, rows, "--all")
    assert [row["name"] for row in every] == ["put.flat", "put.near", "get.far", "get.dear"]
    assert [row["name"] for row in found(table, rows, "--only", "get", "--only", "put.near")] == [
        "put.near",
        "get.far",
        "get.dear",
    ]
    listed = bench(table, rows, "--list").stdout
    assert re.search(r"get.dear .* size 32 .* on demand", listed)


def test_a_row_above_its_factor_is_measured_four_times_and_fails_the_command(table: Path) -> None:
    rows = f"[put]\nbound = {{ size = 32, at_most = 0.001 }}\nflat = {{ size = 32, at_most = {LOOSE} }}\n"
    done = bench(table, rows, "--json", expected=1)
    bound, flat = json.loads(done.stdout)["rows"]
    assert (bound["verdict"], bound["runs"]) == ("FAILED", RUNS)
    assert (flat["verdict"], flat["runs"]) == ("ok", 1)
    assert "put.bound, again (4 of 4)" in done.stderr
    assert done.stderr.splitlines()[-1] == "shmq: above what is allowed: put.bound"


def test_a_use_that_becomes_dear_is_found_and_a_disturbed_run_is_not(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verb that spends a hundred times as much beside 200 messages; the other one only in its first run."""
    made = 0

    def work(seconds: float) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    def cliff(s: Scene) -> Verb:
        return Verb(lambda: work(1e-3 if s.situation.depth == 200 else 1e-5), times=5)

    def disturbed(s: Scene) -> Verb:
        nonlocal made
        made += 1
        slow = 1e-3 if made == 2 else 1e-5  # the variant of the first run
        return Verb(lambda: work(slow), times=5)

    monkeypatch.setitem(VERBS, "cliff", cliff)
    monkeypatch.setitem(VERBS, "disturbed", disturbed)
    row = '{ both = { memory = "32MiB" }, depth = 200, at_most = 20 }'
    table.write_text(f"[cliff]\nrow = {row}\n[disturbed]\nrow = {row}\n")
    dear, calm = measure_ratios(read_rows(table))
    assert (dear.verdict, dear.runs) == ("FAILED", RUNS)
    assert dear.factor is not None
    assert dear.factor > 20
    assert (calm.verdict, calm.runs) == ("ok", 2)


def test_a_use_that_stops_fails_unless_the_table_knows_it(table: Path) -> None:
    full = 'both = { memory = "16MiB" }, queue = { maxsize = 50 }'
    rows = f"[put]\nknown = {{ {full}, at_most = inf, goal = 2 }}\nnew = {{ {full}, at_most = 2 }}\n"
    known, new = found(table, rows, expected=1)
    assert (known["verdict"], known["factor"], known["at_most"]) == ("open: it stops", None, None)
    assert known["note"].startswith("queue 'measured' is full: 50 of 50 messages")
    assert (new["verdict"], new["factor"]) == ("FAILED", None)


def test_a_call_that_would_wait_for_ever_counts_as_stopped(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shmq.bench.ratios import measure

    monkeypatch.setattr(measure, "HANGS", 0.2)
    monkeypatch.setitem(
        VERBS, "waiting", lambda s: Verb(s.queue.receive if s.situation.depth == 0 else lambda: None, times=1)
    )
    table.write_text('[waiting]\nrow = { both = { memory = "16MiB" }, depth = 0, at_most = 2 }\n')
    (row,) = measure_ratios(read_rows(table))
    assert (row.verdict, row.factor) == ("FAILED", None)
    assert row.note == "a call hangs: no end within 0.2 s"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("[fly]\nrow = { depth = 5, at_most = 2 }", "there is no verb 'fly'"),
        ("[put]\nrow = { deep = 5, at_most = 2 }", "put.row: there is no deep"),
        ("[put]\nrow = { depth = 5 }", "put.row: a row has at_most"),
        ("[put]\nrow = { depth = 5, at_most = 2, goal = 3 }", "a goal only below that"),
        ("[put]\nrow = {", "rows.toml"),
    ],
)
def test_a_row_that_makes_no_sense_is_named(table: Path, rows: str, words: str) -> None:
    assert words in bench(table, rows, expected=2).stderr


def test_a_row_that_there_is_not_is_answered_with_the_nearest(table: Path) -> None:
    rows = "[put]\nflat = { depth = 5, at_most = 2 }"
    assert "did you mean 'put.flat'?" in bench(table, rows, "--only", "put.flatt", expected=2).stderr


def test_ctrl_c_ends_it_with_130_and_leaves_nothing(table: Path, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    both = "both = { depth = 0, memory = '16MiB' }, baseline = { sleepers = 1 }"
    table.write_text(f"[wake]\nrow = {{ {both}, sleepers = 3, at_most = 0.001 }}")
    command = [sys.executable, "-m", "shmq", "bench", "ratios", "--table", str(table)]
    measuring = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(files)},
        start_new_session=True,
    )
    try:
        assert measuring.stderr is not None
        assert measuring.stderr.readline() == "1 of 1: wake.row\n"
        maps = Path(f"/proc/{measuring.pid}/maps")
        deadline = time.monotonic() + 120
        while not (segments := set(re.findall(r"/dev/shm/shmq-\S+", maps.read_text()))):
            assert measuring.poll() is None, measuring.communicate()
            assert time.monotonic() < deadline
        os.killpg(measuring.pid, signal.SIGINT)  # as a terminal does
        out, words = measuring.communicate(timeout=120)
    finally:
        measuring.kill()
        measuring.wait()
    assert (measuring.returncode, out) == (130, "")
    assert "Traceback" not in words
    assert not any(Path(segment).exists() for segment in segments)
    assert list(files.iterdir()) == []
    with pytest.raises(ProcessLookupError):  # no sleeper has outlived it
        os.killpg(measuring.pid, 0)
