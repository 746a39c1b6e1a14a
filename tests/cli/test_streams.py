"""Closed streams, and what else a shell can do to a command: one line on stderr, never a traceback of shmq's own."""

import pytest

from tests.cli.shell import Shell


@pytest.mark.parametrize("command", ["ls", "ls --json", "get jobs", "peek jobs", "--help", "stat jobs"])
def test_a_closed_stdout_is_said_and_takes_nothing(shell: Shell, command: str) -> None:
    shell("put", "jobs", "x")
    done = shell.script(f"shmq {command} >&-")
    assert (done.returncode, done.stderr) == (1, "failed: stdout closed\n")
    assert shell("get", "jobs", "--timeout", "0").out == "x\n"


@pytest.mark.parametrize("command", ["put jobs", "put jobs -", "put jobs --lines"])
def test_a_closed_stdin_is_no_empty_message(shell: Shell, command: str) -> None:
    shell("declare", "jobs")
    done = shell.script(f"shmq {command} <&-")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("failed: stdin closed\n")
    assert shell("stat", "jobs", "--json").json["put"] == 0


def test_with_a_closed_stdin_nobody_can_be_asked(shell: Shell) -> None:
    shell("put", "jobs", "x")
    done = shell.script("shmq purge jobs <&-")
    assert done.returncode == 2
    assert done.stderr.endswith("give --yes\n")


def test_with_a_closed_stderr_words_do_not_come_among_the_data(shell: Shell) -> None:
    done = shell.script("shmq get nowhere 2>&-")
    assert (done.returncode, done.stdout) == (3, "")


def test_what_a_handler_prints_to_a_closed_stdout_lands_in_no_file_of_the_broker(shell: Shell) -> None:
    shell("put", "jobs", "x")
    shell.script("shmq work jobs builtins:print -n 0 --until-empty >&-")
    assert (shell.directory / "lock").read_bytes() == (shell.directory / "segment").read_bytes()
    shell("check")


@pytest.mark.parametrize(
    "command", ["--version", "--help", "get --help", "ls", "ls --json", "get jobs", "get jobs --json", "peek jobs"]
)
def test_a_full_disk_behind_stdout_is_said(shell: Shell, command: str) -> None:
    shell("put", "jobs", "x")
    done = shell.script(f"shmq {command} > /dev/full")
    assert (done.returncode, done.stderr) == (1, "failed: No space left on device: stdout\n")
    assert shell("get", "jobs", "--timeout", "0").out == "x\n"


@pytest.mark.parametrize("word", ["abc", "1.5", ""])
def test_a_count_is_a_whole_number(shell: Shell, word: str) -> None:
    refused = shell("get", "jobs", "-n", word, expected=2)
    assert f"{word!r} is not a whole number" in refused.words


@pytest.mark.parametrize("command", ["get jobs", "put jobs x"])
@pytest.mark.parametrize("word", ["nan", "abc", ""])
def test_a_timeout_is_a_number(shell: Shell, command: str, word: str) -> None:
    refused = shell(*command.split(), "--timeout", word, expected=2)
    assert f"{word!r} is not a number of seconds" in refused.words
    assert "Traceback" not in refused.words


@pytest.mark.parametrize(
    "text", ["raise RuntimeError('it is broken')", "import no_such_module", "def handle(m)", "exit(3)"]
)
def test_a_module_with_a_fault_is_shown_with_its_own_frames_alone(shell: Shell, text: str) -> None:
    shell("declare", "jobs")
    (shell.folder / "faulty.py").write_text(text + "\n")
    failed = shell("work", "jobs", "faulty:handle", "--until-empty", expected=1)
    assert failed.words.endswith("failed: module 'faulty' cannot be imported\n")
    assert "faulty.py" in failed.words
    assert "click" not in failed.words
    assert "shmq/cli" not in failed.words


def test_a_remedy_is_a_command(shell: Shell) -> None:
    shell("declare", "jobs")
    shell("shutdown", "jobs")
    assert shell("put", "jobs", "x", expected=1).words == (
        "shut down: queue 'jobs' is shut down; shmq reopen takes it back into service\n"
    )
    (shell.folder / "file").write_text("")
    refused = shell("-d", str(shell.folder / "file"), "init", expected=3)
    assert refused.words.endswith("file is not a directory; name a directory: a broker is one, with files of its own\n")


def test_a_queue_that_memory_can_never_hold_is_not_helped_by_taking_messages_out(shell: Shell) -> None:
    in_memory = ("-d", str(shell.folder / "in memory"))
    shell(*in_memory, "init", "--disk", "0", "--memory", "64MiB")
    full = shell(*in_memory, "declare", "jobs", "maxsize=16777216", expected=1).words
    assert "can never hold this" in full
    assert "take messages out" not in full
    assert "smaller maxsize" in full
