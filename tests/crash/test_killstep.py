"""Real processes are killed, or stopped, at exact machine steps of each operation; survivors lose nothing.

The step killer (docs/step-killer.md) does the work; here are its sizes for the suite, and the proof that it can fail.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steps import driver as step_driver
from tests.conftest import is_strict
from tests.repo.tree import ROOT
from tests.support.size import FULL, sized

TOOL = (ROOT / "tools", "steps.killstep")
KILLS = sized(180_000, 2_000_000)
KILLS_AT_WRAP = sized(20_000, 200_000)  # of those on slots, where positions and laps begin with 0 again
PAUSES = sized(20_000, 200_000)
# In the suite one in twenty of the second deaths that leave what is like something tried: a fifth of all.
TWO_DEATHS = ["--two"] if FULL else ["--closure", "--deaths", "2"]
MORE = 1.01  # asked for: steps are chosen by chance
NOT_TESTED = 0.001  # of all runs may leave the recorded path
FORBIDDEN = 2

Figure = Callable[..., None]


def run(*arguments: str | Path, timeout: float = 4900) -> tuple[int, dict[str, Any]]:
    """The exit code and the results of tools/killstep; its failures are shown as they are."""
    words = [sys.executable, *TOOL, "--json", *arguments]
    result = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
    if result.returncode == FORBIDDEN and "forbidden" in result.stderr and not is_strict():
        pytest.skip(result.stderr.strip())
    assert result.returncode in (0, 1), result.stderr
    results: dict[str, Any] = json.loads(result.stdout)
    return result.returncode, results


def broken_of(results: dict[str, Any]) -> list[str]:
    return [f"{one['wrong']}\n  {one['again']}" for outcome in results["outcomes"] for one in outcome["broken"]]


def tried_of(results: dict[str, Any]) -> int:
    """How many runs ended where they were to end; hardly any may have taken another way."""
    tried: int = sum(outcome["tried"] for outcome in results["outcomes"])
    left = sum(outcome["left_path"] for outcome in results["outcomes"])
    assert left <= NOT_TESTED * tried, f"{left} runs left the recorded path, {tried} did not"
    return tried


@pytest.mark.timeout(5000)
def test_no_kill_at_any_step_of_any_operation_breaks_anything(seed: int, figure: Figure) -> None:
    """Shows S22, S171, E17, R1, R3, G1, G2, G5."""
    tried, broken = 0, []
    for where, kills in ((["--begin", "new"], KILLS), (["--begin", "wrap", "--slots"], KILLS_AT_WRAP)):
        _, results = run(*where, "--kills", str(int(kills * MORE)), "--seed", str(seed))
        assert tried_of(results) >= kills
        tried += tried_of(results)
        broken += broken_of(results)
    figure("step kills", kills=tried, broken=len(broken))
    assert not broken, "\n".join(broken)


@pytest.mark.timeout(5000)
def test_no_stop_at_any_step_keeps_others_from_their_messages_beyond_the_patience(seed: int, figure: Figure) -> None:
    """Shows G4."""
    _, results = run("--pause", "--kills", str(int(PAUSES * MORE)), "--seed", str(seed))
    broken = broken_of(results)
    figure("step pauses", pauses=tried_of(results), blocked=len(broken))
    assert not broken, "\n".join(broken)
    assert tried_of(results) >= PAUSES


@pytest.mark.timeout(5000)
def test_no_second_death_on_any_image_that_a_first_one_leaves_breaks_anything(figure: Figure) -> None:
    """Shows G2."""
    _, results = run(*TWO_DEATHS)
    broken = broken_of(results)
    pairs = sum(outcome["pairs"] for outcome in results["outcomes"])
    figure("two deaths", pairs=pairs, broken=len(broken))
    assert not broken, "\n".join(broken)
    assert all(outcome["left_path"] == 0 for outcome in results["outcomes"]), "images are put back by halves"
    assert all(outcome["pairs"] > outcome["nodes"] >= 1 for outcome in results["outcomes"])


def test_three_deaths_one_after_the_other_break_nothing() -> None:
    """Of the deaths that leave an image like an earlier one, the tool tries some and leaves out the rest."""
    _, results = run("--closure", "--deaths", "3", "--only", "get")
    (outcome,) = results["outcomes"]
    assert not broken_of(results), "\n".join(broken_of(results))
    assert (outcome["depth"], outcome["left_path"], outcome["whole"]) == (3, 0, True)
    assert outcome["spared"] > outcome["pairs"] > outcome["nodes"] > 10


def steps_of(program: Path, scenario: str, *tables: str | Path) -> int:
    """How many steps the driver records."""
    driver = step_driver.start(program, [scenario, "--mode", "kill", "--step", "0", *map(str, tables)])
    assert driver.stdout is not None
    frames = list(step_driver.read_frames(driver.stdout))
    assert step_driver.stop(driver) == ""
    events = [frame.event for frame in frames if isinstance(frame, step_driver.Line)]
    return next(int(event["steps"]) for event in events if event["event"] == "trace")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kills", "0"], "--kills: 0: give 1 or more"),
        (["--step", "3"], "name it with --only"),
        (["--step", "99999", "--only", "get"], "get has the steps 0 to "),
        (["--pause", "--two"], "give one"),
        (["--pause", "--only", "shut-down"], "shut-down: others are kept out on purpose"),
        (["--only", "got"], "no scenario got"),
    ],
)
def test_what_cannot_be_tried_is_refused_and_not_reported_as_tried(words: list[str], said: str) -> None:
    result = subprocess.run([sys.executable, *TOOL, *words], capture_output=True, text=True, check=False)
    if "forbidden" in result.stderr and not is_strict():
        pytest.skip(result.stderr.strip())
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.fixture
def program(tool: Callable[[str], str]) -> Path:
    """The driver, and beside it what is known of its instructions."""
    tool("objdump")
    built = step_driver.build()
    reason = step_driver.why_ptrace_is_forbidden(built)
    if reason is not None:
        pytest.skip(f"ptrace is forbidden here: {reason}")
    return built


@pytest.mark.parametrize("scenario", ["put-block", "get-many", "move-all"])
def test_a_scenario_has_the_same_steps_in_each_run(scenario: str, program: Path) -> None:
    """So a finding can be tried again by its step. A scenario that attaches asks the kernel: it may take more steps."""
    assert len({steps_of(program, scenario, "--code", step_driver.code_of(program)) for _ in range(8)}) == 1


@pytest.mark.parametrize("scenario", ["get", "ack-block", "release"])
def test_breakpoints_record_each_step_that_single_steps_do(scenario: str, program: Path) -> None:
    """Of operations without an instruction that repeats itself, of which single steps would record each turn."""
    alone = steps_of(program, scenario)
    assert alone > 100
    assert steps_of(program, scenario, "--code", step_driver.code_of(program)) == alone


def drivers_of(tool: int) -> set[int]:
    """The processes of a run of the tool that are its drivers, of whatever thread's making."""
    made = (Path(task) / "children" for task in Path(f"/proc/{tool}/task").iterdir())
    return {int(word) for children in made for word in children.read_text().split()}


def all_that_is_said(terminal: int, until: str = "") -> str:
    said = b""
    while not until or until not in said.decode():
        try:
            part = os.read(terminal, 4096)
        except OSError:  # nobody has the other end any more
            part = b""
        if not part:
            assert not until, f"{until} was never said: {said.decode()}"
            break
        said += part
    return said.decode()


def test_an_interrupt_leaves_what_was_done_until_then_and_no_process(tmp_path: Path) -> None:
    """At the first outcome, of two scenarios of which the second takes minutes."""
    terminal, end = os.openpty()
    words = [
        sys.executable,
        *map(str, TOOL),
        "--json",
        "--jobs",
        "1",
        "--every",
        "20",
        "--only",
        "get",
        "--only",
        "put-no-memory",
    ]
    heeding = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with (tmp_path / "results").open("w+") as results:
        tool = subprocess.Popen(words, stdout=results, stderr=end, preexec_fn=heeding)
        os.close(end)
        all_that_is_said(terminal, until="1 of 2 scenarios")
        drivers: set[int] = set()
        while not drivers:
            drivers = drivers_of(tool.pid)
        os.kill(tool.pid, signal.SIGINT)
        said = all_that_is_said(terminal)
        assert tool.wait(60) == 128 + signal.SIGINT, said
        results.seek(0)
        found = json.load(results)
    os.close(terminal)
    assert "interrupted; 1 of 2 scenarios were finished" in said
    assert found["interrupted"]
    whole, cut = found["outcomes"]
    assert (whole["scenario"], whole["interrupted"]) == ("get", False)
    assert whole["tried"] > 0
    assert (cut["scenario"], cut["interrupted"], cut["broken"]) == ("put-no-memory", True, [])
    for driver in drivers:
        assert not Path(f"/proc/{driver}").exists()
        assert not list(Path("/dev/shm").glob(f"shmq-killstep-{driver:010}-*"))


MISTAKES = {
    "the owner is named one step after the claim": (
        "put/publish.c",
        "if (!shmq_cas_seq(&slot->word, word, shmq_word(lap, 0, shmq_self(r->queue), 0, SHMQ_CLAIMED))) { /* T1 */",
        "uint64_t nameless = shmq_word(lap, 0, 0, 0, SHMQ_CLAIMED);\n"
        "            if (!shmq_cas_seq(&slot->word, word, nameless) ||\n"
        "                !shmq_cas_seq(&slot->word, nameless, nameless | (uint64_t)shmq_self(r->queue) << 8)) {",
        ["--only", "put-few"],
    ),
    "the reaper wakes nobody": (
        "recovery/entries_recover.c",
        "shmq_notify(q);",
        "(void)q;",
        ["--only", "wake", "--only", "release-wakes"],
    ),
    "the slot is free before the block is": (
        "settle/settle.c",
        "    shmq_block_drop(r->queue->m, shmq_body_offset(d->body), d->body_gen, shmq_body_bit(d->body));\n"
        "    for (;;) {",
        "    for (bool dropped = false;;) {\n"
        "        if (!dropped && shmq_word_state(shmq_load_seq(&slot->word)) == SHMQ_DEQUEUED) {\n"
        "            dropped = shmq_slot_free(r, slot, shmq_load_seq(&slot->word));\n"
        "            shmq_block_drop(r->queue->m, shmq_body_offset(d->body), d->body_gen, shmq_body_bit(d->body));\n"
        "        }",
        ["--only", "ack-block"],
    ),
    "what the dead held is given back before their moves are decided": (
        "recovery/reap.c",
        "(s->own || visit_queues(s, locked, decide_moves)) && visit_queues(s, locked, recover)",
        "visit_queues(s, locked, recover) && (s->own || visit_queues(s, locked, decide_moves))",
        ["--only", "move"],
    ),
    "a cursor from long ago goes by laps of 32 bits": (
        "take/scan.c",
        "if (d->as.by != NULL && meet_old(r, start, &p, epoch, d, &status)) {",
        "if (d->as.by != NULL && p == UINT64_MAX && meet_old(r, start, &p, epoch, d, &status)) {",
        ["--begin", "wrap", "--only", "select-receive"],
    ),
    "a half-done deletion leaves messages that nobody can find": (
        "lifecycle/release.c",
        "    shmq_queues_end_deleted(m);\n",
        "",
        ["--only", "delete-queue"],
    ),
    "a watcher that is stopped in its sleep keeps the watch": (
        "wake/watch.c",
        "!(late && is_silent(w->m, index))",
        "!(late && w->m == NULL && is_silent(w->m, index))",
        ["--pause", "--only", "watch-first", "--only", "watch-asleep-behind"],
    ),
    "a stopped consumer of higher priority is never passed": (
        "consumers/ranks.c",
        "return now >= since && now - since >= q->m->patience_ns;",
        "return now < since && now - since >= q->m->patience_ns;",
        ["--only", "ranked-pass"],
    ),
    "rows are told of before they are committed": (
        "flow/flush.c",
        "    if (status == SHMQ_OK) {\n        status = write_rows(",
        "    if (status == SHMQ_OK) {\n        shmq_store_seq(&ring->flow, shmq_flow_word(b.end, true));\n"
        "        status = write_rows(",
        ["--only", "flow-enter"],
    ),
    "slots are free before their rows are told of": (
        "flow/flush.c",
        "    shmq_flushing_say(ring, b.end, b.last.count, b.last.bytes);",
        "    for (uint32_t i = 0; i < b.count; i++) {\n        shmq_moved_free(t->back, b.rows[i].place);\n    }\n"
        "    shmq_flushing_say(ring, b.end, b.last.count, b.last.bytes);",
        ["--only", "flow-enter"],
    ),
    "rows that a dead mover has written stay beside those that are written for it": (
        "flow/flush.c",
        "sweeps, low, b->from, b->rows",
        "sweeps, low, UINT64_MAX, b->rows",
        ["--only", "flow-put-dead-written"],
    ),
    "whoever recovers does not say that rows of a dead mover may be there": (
        "flow/turn.c",
        "    shmq_store_seq(&q->page->unswept, UINT32_MAX); /* before",
        "    /* before",
        ["--only", "flow-put-dead-written"],
    ),
    "rows have left before they are messages in memory": (
        "flow/pull.c",
        "    for (uint32_t n = 0; n < filled; n++) {\n        (void)shmq_front_show(",
        "    if (filled != 0) {\n        shmq_store_seq(&t->back->shm->low, rows[end - 1].place + 1);\n    }\n"
        "    for (uint32_t n = 0; n < filled; n++) {\n        (void)shmq_front_show(",
        ["--only", "flow-pull"],
    ),
    "what a dead mover has decided to drop is not dropped": (
        "flow/recover.c",
        "    shmq_drop_end(back); /* no entry",
        "    /* nothing",
        ["--only", "flow-discard"],
    ),
    "a row that was fetched is marked before it is a message in memory": (
        "flow/fetch.c",
        "    while (shown < f->count && shmq_front_show(",
        "    mark(t, f, f->count);\n    while (shown < f->count && shmq_front_show(",
        ["--only", "flow-fetch"],
    ),
    "of delayed messages that came in together the last one alone is marked after a death": (
        "flow/recover.c",
        "most = SHMQ_WAITED_AT_ONCE;",
        "most = 1;",
        ["--only", "flow-wait-come"],
    ),
    "a row whose mover died is not marked": (
        "flow/recover.c",
        "bool passed = place < shmq_load_relaxed(&t->back->shm->low);",
        "bool passed = place < UINT64_MAX;",
        ["--only", "flow-fetch"],
    ),
    "what was fetched counts as a row after a death": (
        "flow/recover.c",
        "        shmq_erased_say(front, slot);\n",
        "        (void)slot;\n",
        ["--only", "flow-fetch"],
    ),
    "what a dead mover left is not recovered": (
        "flow/recover.c",
        "    recover_front(back, front);\n",
        "    if (ring != NULL) {\n        return;\n    }\n    recover_front(back, front);\n",
        ["--only", "flow-enter"],
    ),
    "what a dead mover has handed over is made available in the back ring, too": (
        "flow/recover.c",
        "low - place <= SHMQ_TURN_ENTRIES) {",
        "low - place > SHMQ_TURN_ENTRIES) {",
        ["--only", "flow-enter-full-ring"],
    ),
    "what a dead mover brought last is a row, too": (
        "flow/recover.c",
        "uint64_t last = shmq_front_tail(front);",
        "uint64_t last = shmq_load_seq(&front->shm->tail);",
        ["--only", "flow-pull"],
    ),
    "a slot of the front ring is free, and nobody is told": (
        "limits/slot_free.c",
        "shmq_notify_starved(q); /* a taker that found no room",
        "(void)q; /* a taker that found no room",
        ["--only", "flow-front-wakes"],
    ),
    "a slot of the front ring is free, and nobody is told who has looked at all that there is": (
        "limits/slot_free.c",
        "shmq_notify_starved(q); /* a taker that found no room",
        "shmq_notify(q); /* a taker that found no room",
        ["--only", "flow-front-wakes-starved"],
    ),
    "a process that finds the mover's lock taken is not told of its end": (
        "flow/turn.c",
        "if (shmq_load_seq(&q->page->missed) != 0) {",
        "if (shmq_load_seq(&q->page->missed) > 1) {",
        ["--pause", "--only", "flow-flush"],
    ),
    "what lies above the rows is taken before them": (
        "take/scan_flowed.c",
        "shmq_flow_is_on(d->seen.flow) ? shmq_load_seq(&back->shm->low) : UINT64_MAX;",
        "shmq_flow_is_on(d->seen.flow) ? UINT64_MAX : UINT64_MAX;",
        ["--pause", "--only", "flow-flush"],
    ),
    "a reaper does not go on where another one has died": (
        "recovery/reap.c",
        "if (member && !sweep_queues(&s, false)) {",
        "if (member && shmq_row_state(word) != SHMQ_ROW_REAPING && !sweep_queues(&s, false)) {",
        [*TWO_DEATHS, "--only", "put-few", "--only", "release"],
    ),
    "a row that somebody reaps is left to him": (
        "recovery/reap.c",
        "if (shmq_row_state(word) != SHMQ_ROW_REAPING &&\n",
        "if (shmq_row_state(word) == SHMQ_ROW_REAPING ||\n",
        [*TWO_DEATHS, "--only", "get"],
    ),
    "a reaper that repairs nothing turns no scan back": (
        "recovery/entries_recover.c",
        "    shmq_rewind_all(r); /* always",
        "    if (freed != 0) {\n        shmq_rewind_all(r);\n    } /* always",
        [*TWO_DEATHS, "--only", "release", "--only", "move"],
    ),
    "each reaper counts the death that another one has counted": (
        "ring/ring_delivery.c",
        "if (tally >> 48 == mark || shmq_load",
        "if (shmq_load",
        [*TWO_DEATHS, "--only", "ack", "--only", "retry", "--only", "reject"],
    ),
}


@pytest.mark.timeout(3000)
def test_mistakes_that_are_put_into_the_core_are_found(tmp_path: Path) -> None:
    """One after the other in one copy of the tree, so that each builds only what it changes."""
    shutil.copytree(ROOT / "native", tmp_path / "native")
    for mistake, (file, right, wrong, scenarios) in MISTAKES.items():
        source = tmp_path / "native" / "src" / file
        text = source.read_text()
        assert text.count(right) >= 1, f"{file} does not hold what is to be replaced"
        source.write_text(text.replace(right, wrong))
        code, results = run("--source", tmp_path, "--kills", "5000", "--first", *scenarios)
        assert code == 1, f"not found: {mistake}"
        failures = [one for outcome in results["outcomes"] for one in outcome["broken"]]
        again = ("--step", "--path")  # else it is wrong undisturbed, too
        failure = next(one for one in failures if any(word in one["again"] for word in again))
        command = failure["again"].split()
        assert command.pop(0) == "tools/killstep"
        code, results = run("--source", tmp_path, *command)
        assert code == 1, f"{mistake}: {failure['again']} does not show it again"
        assert sum(outcome["tried"] for outcome in results["outcomes"]) == command[-1].count("/") + 1  # deaths
        source.write_text(text)
