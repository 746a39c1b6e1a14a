"""work: a function of a module of the user's handles messages, in processes and in this one."""

import os
import signal
from pathlib import Path

import pytest

from tests.cli.shell import Shell, end, rest_of

MODULE = """
import os
import threading

def double(message):
    return 2 * message.body

def fail(message):
    raise ValueError("no good")

def refuse_two(message):
    if message.body == 2:
        message.reject("not wanted")

async def coroutine(message):
    pass

def two(message, other):
    pass

anonymous = lambda message: None

def hang(message):
    if message.body == 2:
        threading.Event().wait()

def announce(message):
    print("in hand", flush=True)
    os.read(os.open("gate", os.O_RDONLY), 1)  # until the test opens the gate
"""


@pytest.fixture
def jobs(shell: Shell, tmp_path: Path) -> Shell:
    """A shell in a folder with the module `jobs`, and a queue with three numbers."""
    (tmp_path / "jobs.py").write_text(MODULE)
    shell("put", "numbers", "-", "--lines", "--as", "json", given="1\n2\n3\n")
    return shell


@pytest.mark.parametrize("processes", ["0", "2"])
def test_work_handles_what_is_there_and_ends(jobs: Shell, processes: str) -> None:
    jobs("work", "numbers", "jobs:double", "-n", processes, "--results", "doubled", "--until-empty")
    assert sorted(jobs("get", "doubled", "-n", "9", "--timeout", "0").lines) == ["2", "4", "6"]
    found = jobs("stat", "numbers", "--json").json
    assert (found["ready"], found["unsettled"], found["acked"]) == (0, 0, 3)


def test_a_temporary_directory_with_too_long_a_path_for_sockets_is_named(jobs: Shell, tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 25)
    deep.mkdir()
    jobs.environment["TMPDIR"] = str(deep)
    failed = jobs("work", "numbers", "jobs:double", "-n", "1", "--until-empty", expected=1)
    assert "path too long for a socket; let TMPDIR name" in failed.words
    assert str(deep) in failed.words
    assert jobs("stat", "numbers", "--json").json["ready"] == 3


def test_work_with_a_selector_leaves_the_rest(jobs: Shell) -> None:
    for number in "456":
        jobs("put", "numbers", number, "--as", "json", "-H", f"size={number}")
    command = ["work", "numbers", "jobs:double", "-n", "1", "--results", "doubled", "--until-empty"]
    jobs(*command, "--selector", "size IN ('5', '6')")
    assert sorted(jobs("get", "doubled", "-n", "9", "--timeout", "0").lines) == ["10", "12"]
    assert jobs("get", "numbers", "-n", "9", "--timeout", "0").lines == ["1", "2", "3", "4"]
    refused = jobs(*command, "--selector", "size >", expected=2)
    assert "size >" in refused.words


def test_work_on_numbers_where_headers_are_text_says_so(jobs: Shell) -> None:
    jobs("put", "numbers", "4", "--as", "json", "-H", "size=4")
    words = jobs("work", "numbers", "jobs:double", "-n", "0", "--until-empty", "--selector", "size > 3").words
    assert "nothing that is selected is in 'numbers' now; the header size of message" in words
    assert "-H size:=4" in words


def test_a_message_that_always_fails_has_a_line_for_each_attempt_and_a_traceback_when_it_is_dead(jobs: Shell) -> None:
    jobs("declare", "thrice", "max_attempts=3")
    jobs("put", "thrice", "x")
    words = jobs("work", "thrice", "jobs:fail", "-n", "1", "--until-empty", expected=1).words
    assert words.count("Traceback") == 1
    assert words.count("no good") == 5  # one of them in the line of code, one at the end of the traceback
    assert "is dead now (attempt 3 of 3" in words
    assert "it went to queue 'thrice.dead'" in words
    assert words.endswith("failed: 1 message of queue 'thrice' died (1 max_attempts)\n")


def test_work_ends_when_the_queue_is_shut_down(jobs: Shell) -> None:
    jobs("shutdown", "numbers")
    assert jobs("work", "numbers", "jobs:double", "-n", "1", "--json").json["acked"] == 3


def test_a_failing_function_is_told_on_stderr_and_its_messages_die(jobs: Shell) -> None:
    jobs("declare", "once", "max_attempts=1")
    jobs("put", "once", "x")
    outcome = jobs("work", "once", "jobs:fail", "-n", "0", "--until-empty", expected=1)
    assert "no good" in outcome.words
    assert "handling.py" not in outcome.words
    assert outcome.out == ""
    assert "no good" in jobs("peek", "once.dead", "--json").json["death"]["error"]


def test_a_call_that_is_over_the_time_limit_is_killed(jobs: Shell) -> None:
    jobs("declare", "numbers", "max_deaths=1")
    words = jobs("work", "numbers", "jobs:hang", "-n", "1", "--until-empty", "--time-limit", "2", expected=1).words
    assert "its handler is over time_limit=2 s with message" in words
    assert words.endswith("failed: 1 message of queue 'numbers' died (1 max_deaths)\n")
    assert jobs("stat", "numbers", "--json").json["acked"] == 2
    assert "more than 0 seconds" in jobs("work", "numbers", "jobs:hang", "--time-limit", "0", expected=2).words


@pytest.mark.parametrize("processes", ["0", "2"])
def test_work_says_in_json_what_became_of_its_messages(jobs: Shell, processes: str) -> None:
    found = jobs("work", "numbers", "jobs:refuse_two", "-n", processes, "--until-empty", "--json", expected=1).json
    assert (found["handled"], found["retried"], found["dead"]) == (2, 0, {"rejected": 1})
    assert (found["acked"], found["dead_lettered"]) == (2, 1)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("jobs", "MODULE:FUNCTION"),
        ("jobs:coroutine", "coroutine function"),
        ("jobs:two", "missing a required argument: 'other'"),
        ("jobs:anonymous", "at the top of a module"),
        ("nowhere:double", "no module 'nowhere'"),
        ("jobs:treble", "has no 'treble'"),
        ("jobs:os.sep", "not a function but str"),
    ],
)
def test_a_function_that_is_not_there_is_refused(jobs: Shell, function: str, words: str) -> None:
    assert words in jobs("work", "numbers", function, "--until-empty", expected=2).words


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_the_first_signal_finishes_what_is_in_hand(
    jobs: Shell, tmp_path: Path, stop: signal.Signals, code: int
) -> None:
    os.mkfifo(tmp_path / "gate")
    working = jobs.start("work", "numbers", "jobs:announce", "-n", "0")
    try:
        assert working.stdout is not None
        assert working.stdout.readline() == "in hand\n"
        working.send_signal(stop)
        assert working.stderr is not None
        assert working.stderr.readline() == (
            "finishing the messages in hand; Ctrl-C or SIGTERM once more ends at once and gives them back\n"
        )
        gate = os.open(tmp_path / "gate", os.O_WRONLY)
        os.close(gate)
        working.communicate(timeout=240)
        assert working.returncode == code
    finally:
        end(working)
    found = jobs("stat", "numbers", "--json").json
    assert (found["acked"], found["ready"], found["unsettled"]) == (1, 2, 0)


@pytest.mark.parametrize("processes", ["0", "1"])
def test_the_second_signal_gives_back_what_is_in_hand(jobs: Shell, tmp_path: Path, processes: str) -> None:
    os.mkfifo(tmp_path / "gate")
    working = jobs.start("work", "numbers", "jobs:announce", "-n", processes)
    try:
        assert working.stdout is not None
        assert working.stderr is not None
        assert working.stdout.readline() == "in hand\n"
        working.send_signal(signal.SIGINT)
        assert working.stderr.readline().startswith("finishing the messages in hand")
        working.send_signal(signal.SIGINT)
        assert working.stderr.readline() == "ends at once; the messages in hand go back\n"
        _, words = rest_of(working)
        assert (working.returncode, words) == (130, "")
    finally:
        end(working)
    found = jobs("stat", "numbers", "--json").json
    assert (found["acked"], found["ready"], found["unsettled"]) == (0, 3, 0)
