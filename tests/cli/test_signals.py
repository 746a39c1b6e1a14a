"""Ctrl-C and closed pipes leave nothing broken and nothing said. Each step waits for output, never for time."""

import random
import signal
import subprocess

import pytest

from tests.cli.shell import SHMQ, Shell, end, rest_of


def test_ctrl_c_ends_tail_with_130_and_takes_nothing(shell: Shell) -> None:
    shell("put", "orders", "before")
    tail = shell.start("tail", "orders", "--headers")
    try:
        assert tail.stdout is not None
        assert tail.stderr is not None
        assert tail.stderr.readline() == "watching 'orders'; Ctrl-C ends\n"
        shell("put", "orders", "after", "-H", "n=1")
        assert tail.stdout.readline() == "1  n=1  after\n"
        tail.send_signal(signal.SIGINT)
        out, words = rest_of(tail)
        assert (tail.returncode, out, words) == (130, "", "")
    finally:
        end(tail)
    assert shell("get", "orders", "-n", "2").out == "before\nafter\n"


@pytest.mark.parametrize("command", ["get", "get --follow", "tail"])
def test_a_command_that_waits_for_numbers_where_headers_are_text_says_so_at_once(shell: Shell, command: str) -> None:
    shell("put", "images", "cat", "-H", "width=1500")
    waits = shell.start(*command.split(), "images", "--selector", "width > 1000")
    try:
        assert waits.stderr is not None
        line = waits.stderr.readline()
        if command == "tail":
            line = waits.stderr.readline()
        assert "nothing that is selected is in 'images' now; the header width of message 1 is the text '1500'" in line
        assert "-H width:=1500" in line
        waits.send_signal(signal.SIGINT)
        out, _ = rest_of(waits)
        assert (waits.returncode, out) == (130, "")
    finally:
        end(waits)


@pytest.mark.parametrize(
    ("command", "module"), [("get jobs", "queue"), ("doctor", "click"), ("bench latency", "statistics")]
)
def test_ctrl_c_while_modules_are_loaded_ends_the_command_at_once_and_in_silence(
    shell: Shell, command: str, module: str
) -> None:
    """Also where Python, or the module, would drop the KeyboardInterrupt. queue: before the command itself is there."""
    (shell.folder / f"{module}.py").write_text(
        "import signal\nprint('loading', flush=True)\n"
        "while True:\n    try:\n        signal.pause()\n    except BaseException as error:\n        print(error)\n"
    )
    loading = shell.start(*command.split())
    try:
        assert loading.stdout is not None
        assert loading.stdout.readline() == "loading\n"
        loading.send_signal(signal.SIGINT)
        said = rest_of(loading)
        assert (loading.returncode, *said) == (130, "", "")
    finally:
        end(loading)


def test_ctrl_c_ends_a_measurement_also_where_python_dropped_it(shell: Shell) -> None:
    """The end of an object in which a KeyboardInterrupt came, as seen by the next word of the measurement."""
    (shell.folder / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "import shmq.bench.throughput as throughput\n"
        "class Ends:\n    def __del__(self): os.kill(os.getpid(), signal.SIGINT)\n"
        "real = throughput.rate_of\n"
        "def rate_of(*args, **options):\n    Ends()\n    return real(*args, **options)\n"
        "throughput.rate_of = rate_of\n"
    )
    ended = shell("bench", "throughput", "--rounds", "100", "--seconds", "0.01", expected=130, program=SHMQ)
    assert ended.out == ""
    assert "warm-up: shmq\n" in ended.words
    assert "round 1" not in ended.words


def test_tail_ends_with_the_queue(shell: Shell) -> None:
    shell("declare", "orders")
    tail = shell.start("tail", "orders", "--json")
    try:
        assert tail.stderr is not None
        tail.stderr.readline()
        shell("put", "orders", "x")
        shell("shutdown", "orders")
        out, _ = rest_of(tail)
        assert tail.returncode == 0
        assert '"body": "x"' in out
    finally:
        end(tail)


def test_ctrl_c_ends_get_follow_with_130_and_loses_nothing(shell: Shell) -> None:
    shell("put", "orders", "-", "--lines", given="1\n2\n")
    follow = shell.start("get", "orders", "--follow")
    try:
        assert follow.stdout is not None
        assert [follow.stdout.readline(), follow.stdout.readline()] == ["1\n", "2\n"]
        follow.send_signal(signal.SIGINT)
        _, words = rest_of(follow)
        assert (follow.returncode, words) == (130, "")
    finally:
        end(follow)
    found = shell("stat", "orders", "--json").json
    assert (found["unsettled"], found["dead_lettered"]) == (0, 0)
    # Printed last and interrupted before the ack: back in its place. Printed and acked: gone.
    assert found["acked"] + found["ready"] == 2
    assert found["acked"] >= 1


def test_ctrl_c_ends_a_put_that_waits_for_room(shell: Shell) -> None:
    shell("declare", "few", "maxsize=1")
    putting = shell.start("put", "few", "first")
    assert putting.communicate(timeout=240)[0] != ""
    waiting = shell.start("put", "few", "second")
    try:
        while shell("stat", "few", "--json").json["producers_waiting"] == 0:
            assert waiting.poll() is None
        waiting.send_signal(signal.SIGINT)
        waiting.communicate(timeout=240)
        assert waiting.returncode == 130
    finally:
        end(waiting)
    assert shell("peek", "few").out == "first\n"


def test_a_message_that_could_not_be_printed_goes_back_uncounted(shell: Shell) -> None:
    shell("put", "orders", "x")
    closed = shell.script('{ shmq get orders; echo "code $?" >&2; } | true; exit 0')
    # `true` may still be there when the message is written: then it was printed. It is never lost in between.
    found = shell("stat", "orders", "--json").json
    assert found["acked"] + found["ready"] == 1
    assert found["unsettled"] == 0
    assert closed.stderr == "code 0\n"


def test_a_reader_that_is_surely_gone_gets_nothing_and_nothing_is_lost(shell: Shell) -> None:
    shell("put", "orders", "x")
    process = subprocess.Popen(
        [*SHMQ, "get", "orders", "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=shell.environment
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"x\n"
    process.stdout.close()
    shell("put", "orders", "y")
    assert process.wait(timeout=30) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    message = shell("peek", "orders", "--json").json
    assert (message["body"], message["delivery_count"]) == ("y", 0)


def test_a_closed_pipe_is_met_in_silence(shell: Shell) -> None:
    line = "x" * 200 + "\n"  # half a megabyte in all: more than a pipe holds
    shell("put", "orders", "-", "--lines", given=line * 2500)
    for command in ("peek orders", "peek orders --json", "peek orders --raw", "get orders --follow"):
        done = shell.script(f"set -o pipefail; shmq {command} | head -c 2")
        assert (done.returncode, done.stderr) == (0, ""), command
    found = shell("stat", "orders", "--json").json
    assert found["acked"] + found["ready"] == 2500
    assert 0 < found["acked"] < 2500


def test_a_pipe_that_is_closed_before_anything_is_said_is_met_in_silence(shell: Shell) -> None:
    for command in ("ls", "--help", "stat", "ps", "doctor"):
        done = shell.script(f"set -o pipefail; shmq {command} | exec 0<&-")
        assert (done.returncode, done.stderr) == (0, ""), command


def test_no_message_is_lost_however_often_a_reader_is_interrupted(shell: Shell, seed: int) -> None:
    """Printed and not taken is fine, taken and not printed is not."""
    chance = random.Random(seed)
    count = 2000
    shell("put", "numbers", "-", "--lines", given="".join(f"{number}\n" for number in range(count)))
    printed: list[int] = []
    left = list(range(count))
    for interruption in range(1, 7):
        follow = shell.start("get", "numbers", "--follow")
        try:
            assert follow.stdout is not None
            lines = min(chance.randrange(1, 50), len(left))  # the reader may have come far before it was interrupted
            printed += [int(follow.stdout.readline()) for _ in range(lines)]
            follow.send_signal(signal.SIGINT)
            rest, words = rest_of(follow)
            assert (follow.returncode, words) == (130, "")
            printed += [int(line) for line in rest.splitlines()]
        finally:
            end(follow)
        left = [int(line) for line in shell("peek", "numbers", expected=None).lines]
        assert set(printed) | set(left) == set(range(count))
        # At most the one in hand was printed and not taken, at each interruption.
        assert len(printed) - len(set(printed)) <= interruption
        if not left:
            return
