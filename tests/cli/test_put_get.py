"""Messages go in and come out as they are, and exit codes say what happened."""

import base64
import json
import os
import subprocess

import pytest

import shmq
from tests.cli.shell import SHMQ, Shell, end


def test_put_prints_the_id_and_get_the_body(shell: Shell) -> None:
    assert shell("put", "orders", "hello, world").out == "1\n"
    identity = shell("put", "orders", "again", "--json").json["id"]
    assert identity > 1
    assert shell("get", "orders").out == "hello, world\n"
    assert shell("get", "orders", "--json").json["id"] == identity


def test_put_delays_and_limits_the_life_of_a_message(shell: Shell) -> None:
    shell("put", "orders", "later", "--delay", "3600")
    shell("put", "orders", "gone", "--ttl", "0")
    shell("put", "orders", "now", "--ttl", "3600")
    assert shell("get", "orders").out == "now\n"
    shell("get", "orders", "--timeout", "0", expected=4)
    found = shell("stat", "orders", "--json").json
    assert (found["delayed"], found["expired"], found["ready"]) == (1, 1, 0)
    assert shell("put", "orders", "x", "--delay", "-1", expected=2)


def test_nothing_within_the_timeout_is_said_and_exits_4(shell: Shell) -> None:
    shell("declare", "orders")
    outcome = shell("get", "orders", "--timeout", "0.2", expected=4)
    assert outcome.words == "empty: nothing came to 'orders' within 0.2 s\n"
    assert outcome.out == ""
    assert shell("get", "orders", "--timeout", "0", expected=4).words == "empty: nothing is in 'orders'\n"


def test_get_takes_at_most_n_and_is_content_with_fewer(shell: Shell) -> None:
    shell("put", "numbers", "-", "--lines", given="1\n2\n3\n")
    assert shell("get", "numbers", "-n", "2").out == "1\n2\n"
    assert shell("get", "numbers", "-n", "2", "--timeout", "0").out == "3\n"
    shell("get", "numbers", "-n", "2", "--timeout", "0", expected=4)


def test_get_follow_ends_when_the_queue_is_shut_down(shell: Shell) -> None:
    shell("put", "numbers", "-", "--lines", given="1\n2\n")
    shell("shutdown", "numbers")
    assert shell("get", "numbers", "--follow").out == "1\n2\n"
    assert "reopen" in shell("get", "numbers", expected=1).words


@pytest.mark.parametrize("body", ['{"id": 7,  "customer": "ann"}', "[1,2]", '"text"', "12", "null"])
def test_json_comes_back_as_it_was_written_and_is_a_value_in_python(shell: Shell, body: str) -> None:
    shell("put", "orders", body, "--as", "json")
    assert shell("peek", "orders").out == f"{body}\n"
    assert shell("peek", "orders", "--json").json["body"] == json.loads(body)
    with shmq.open(shell.directory) as broker:
        assert broker.queue("orders").get(timeout=0) == json.loads(body)


def test_what_python_puts_the_command_prints(shell: Shell) -> None:
    import numpy

    with shmq.open(shell.directory) as broker:
        queue = broker.queue("mixed")
        queue.put_many(["text", {"a": [1]}, b"bytes", b"\xff\x00", numpy.zeros((3, 2))])
        broker.queue("mixed", codec="pickle").put({1, 2})
        own: shmq.Codec[bytes] = shmq.Codec("text/x-own", encode=bytes, decode=bytes)
        broker.queue("mixed", codec=own).put(b"own")
    lines = shell("peek", "mixed").lines
    assert lines[:4] == ["text", '{"a":[1]}', "bytes", "<2 bytes, application/octet-stream>"]
    assert lines[4].startswith("<array of float64, 3 x 2, ")
    assert lines[5].endswith("bytes, application/x-python-pickle>")
    assert lines[6] == "own"
    records = [json.loads(line) for line in shell("get", "mixed", "-n", "7", "--json").lines]
    assert [record.get("body") for record in records] == ["text", {"a": [1]}, "bytes", None, None, None, "own"]
    assert records[3]["body_base64"] == "/wA="
    assert records[6]["content_type"] == "text/x-own"


def test_bytes_go_through_stdin_and_raw_unchanged(shell: Shell) -> None:
    data = bytes(range(256)) * 40
    shell("put", "pictures", "-", "--as", "bytes", given=data)
    assert shell.bytes_of("peek", "pictures", "--raw") == data
    assert shell.bytes_of("get", "pictures", "--raw") == data


def test_a_body_from_stdin_keeps_its_last_newline_and_lines_lose_theirs(shell: Shell) -> None:
    shell("put", "texts", given="a\nb\n")
    shell("put", "texts", "-", "--lines", given="c\n\nd")
    with shmq.open(shell.directory) as broker:
        assert broker.queue("texts").get_many(10, timeout=0) == ["a\nb\n", "c", "", "d"]


def test_lines_say_how_many_only_in_json(shell: Shell) -> None:
    assert shell("put", "numbers", "-", "--lines", given="1\n2\n").out == ""
    assert shell("put", "numbers", "-", "--lines", "--json", given="1\n2\n").json == {"put": 2}


def test_lines_are_put_as_they_come_and_not_when_a_buffer_is_full(shell: Shell) -> None:
    ours, theirs = os.pipe()
    process = subprocess.Popen([*SHMQ, "put", "log", "-", "--lines"], stdin=ours, env=shell.environment)
    os.close(ours)
    try:
        with shmq.open(shell.directory) as broker:
            queue = broker.queue("log")
            for word in ("one", "two"):
                os.write(theirs, f"{word}\n".encode())
                assert queue.get(timeout=30) == word
        os.close(theirs)
        assert process.wait(timeout=30) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_a_body_that_is_not_what_it_is_said_to_be_is_refused(shell: Shell) -> None:
    assert "not JSON" in shell("put", "orders", "{'a'}", "--as", "json", expected=2).words
    assert "--as bytes" in shell("put", "orders", "-", given=b"\xff", expected=2).words
    words = shell("put", "orders", "-", "--lines", "--as", "json", given="1\n2\nx\n3\n", expected=2).words
    assert "line 3" in words
    assert shell("get", "orders", "-n", "9", "--timeout", "0").out == "1\n2\n"


def test_infinity_is_no_json_in_and_none_out(shell: Shell) -> None:
    for body in ("1e999", '{"a": [1, -1e400]}', "NaN", "Infinity"):
        words = shell("put", "orders", body, "--as", "json", expected=2).words
        assert words.startswith("refused: the body is not JSON"), words
    foreign: shmq.Codec[bytes] = shmq.Codec("application/json", encode=bytes, decode=bytes)
    with shmq.open(shell.directory) as broker:
        broker.queue("orders", codec=foreign).put(b"[1e999]")
    for command in ("peek", "get"):
        seen = shell(command, "orders", "--json").json
        assert "body" not in seen
        assert base64.b64decode(seen["body_base64"]) == b"[1e999]"


def test_headers_are_seen_by_peek_and_python(shell: Shell) -> None:
    shell("put", "orders", "x", "-H", "source=web", "-H", "note=a=b\nc")
    assert shell("peek", "orders", "--headers").out == "0  source=web note=a=b\\nc  x\n"
    assert shell("peek", "orders", "--json").json["headers"] == {"source": "web", "note": "a=b\nc"}
    assert "NAME=TEXT" in shell("put", "orders", "x", "-H", "source", expected=2).words
    assert "reserved" in shell("put", "orders", "x", "-H", "shmq-a=b", expected=2).words


def test_a_full_queue_fails_after_the_timeout_and_lines_say_how_many_were_put(shell: Shell) -> None:
    shell("declare", "few", "maxsize=2")
    outcome = shell("put", "few", "-", "--lines", "--timeout", "0", given="1\n2\n3\n", expected=1)
    assert "full: queue 'few' is full" in outcome.words
    assert "put: 2 lines" in outcome.words
    assert "of this call accepted" not in outcome.words
    shell("purge", "few", "--yes")
    outcome = shell("put", "few", "-", "--lines", "--json", "--timeout", "0", given="1\n2\n3\n", expected=1)
    assert outcome.json == {"put": 2}
    assert shell("put", "few", "x", "--timeout", "0.1", expected=1).out == ""


def test_options_that_exclude_each_other_are_refused(shell: Shell) -> None:
    shell("put", "orders", "x")
    for arguments in (
        ("get", "orders", "-n", "1", "--follow"),
        ("get", "orders", "--raw", "--json"),
        ("peek", "orders", "--raw", "--headers"),
        ("put", "orders", "x", "--lines"),
        ("get", "orders", "--timeout", "-1"),
        ("get", "orders", "-n", "0"),
    ):
        shell(*arguments, expected=2)
    assert shell("ls", "--json").json["queues"]["orders"]["ready"] == 1


def test_get_and_peek_make_no_queue(shell: Shell) -> None:
    for command in ("get", "peek", "tail", "stat", "purge", "rm", "shutdown", "reopen"):
        words = shell(command, "nowhere", expected=3).words
        assert words.startswith("not found: there is no queue 'nowhere'")
    assert shell("ls", "--json").json == {"queues": {}}


@pytest.mark.parametrize(("option", "needs"), [("--priority", "priorities=10"), ("--group", "groups=shared")])
def test_what_a_queue_needs_for_an_option_is_in_the_remedy_and_works(shell: Shell, option: str, needs: str) -> None:
    words = shell("put", "new", "x", option, "3", expected=3).words
    assert words.endswith(f"shmq declare new {needs} makes it\n")
    shell("declare", "new", needs)
    shell("put", "new", "x", option, "3")


def test_two_processes_exchange_messages_by_commands(shell: Shell) -> None:
    shell("declare", "questions")
    shell("declare", "answers")
    answering = shell.start("get", "questions", "--follow")
    try:
        assert answering.stdout is not None
        for number in range(3):
            shell("put", "questions", f"question {number}")
            assert answering.stdout.readline() == f"question {number}\n"
        shell("shutdown", "questions")
        assert answering.wait(timeout=30) == 0
    finally:
        end(answering)


def test_a_dead_message_tells_why(shell: Shell) -> None:
    shell("put", "orders", "bad")
    with shmq.open(shell.directory) as broker:
        broker.queue("orders").receive(timeout=0).reject("not an order")
    death = shell("peek", "orders.dead", "--json").json["death"]
    assert (death["queue"], death["reason"], death["error"]) == ("orders", "rejected", "not an order")
    assert "death=rejected" in shell("peek", "orders.dead", "--headers").out


def test_headers_have_types_where_somebody_gives_them(shell: Shell) -> None:
    typed = ["-H", "width:=1500", "-H", "ratio:=1.5", "-H", "urgent:=true", "-H", "note:=null", "-H", 'name:="a=b"']
    shell("put", "images", "cat", "-H", "kind=png", *typed)
    shell("put", "images", "dog", "--headers-json", '{"kind": "png", "width": 10}', "-H", "size=1500")
    first, second = map(json.loads, shell("peek", "images", "--json").lines)
    assert first["headers"] == {
        "kind": "png", "width": 1500, "ratio": 1.5, "urgent": True, "note": None, "name": "a=b"
    }  # fmt: skip
    assert second["headers"] == {"kind": "png", "width": 10, "size": "1500"}
    selector = "kind LIKE 'p%' AND width BETWEEN 100 AND 2000"
    assert shell("peek", "images", "--selector", selector).out == "cat\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-H", "a=1", "-H", "a=2"], "the header 'a' is given twice"),
        (["-H", "a=1", "--headers-json", '{"a": 2}'], "the header 'a' is given twice"),
        (["-H", "a:=1e999"], "1e999 is beyond all floats"),
        (["-H", "a:=NaN"], "NaN is not JSON"),
        (["-H", "a:=soon"], "NAME=TEXT gives text"),
        (["-H", "a:=[1]"], "a header is text, a number, true, false or null"),
        (["-H", "a:=" + "9" * 20], "64 bits"),
        (["--headers-json", '{"a": 1, "a": 2}'], "the header 'a' is given twice"),
        (["--headers-json", "[1]"], "an object is expected"),
        (["--headers-json", '{"a": -1e999}'], "beyond all floats"),
        (["--headers-json", '{"a": {}}'], "the header 'a' is {}: a header is text"),
    ],
)
def test_an_unfit_header_is_refused_before_anything_is_put(shell: Shell, arguments: list[str], words: str) -> None:
    shell("declare", "images")
    assert words in shell("put", "images", "x", *arguments, expected=2).words
    assert shell("stat", "images", "--json").json["put"] == 0


SELECTOR = "kind LIKE 'p%' AND width BETWEEN 100 AND 2000"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["peek", "images"], 4),
        (["get", "images", "--timeout", "0"], 4),
        (["purge", "images", "--yes"], 0),
        (["move", "images", "other"], 0),
    ],
)
def test_a_number_in_a_selector_and_text_in_the_header_is_said(shell: Shell, command: list[str], code: int) -> None:
    shell("put", "images", "cat", "-H", "kind=png", "-H", "width=1500")
    shell("declare", "other")
    for selector in (SELECTOR, "width = 1500", "width + 1 > 3", "width IN (1, 1500)", "kind = 'png' AND -width < 0"):
        words = shell(*command, "--selector", selector, expected=code).words
        assert "the header width of message 1 is the text '1500'" in words, selector
        assert "-H width:=1500" in words
    for selector in ("width = '1'", "width LIKE 'a%'", "height > 3", "kind = 3"):
        words = shell(*command, "--selector", selector, expected=code).words
        assert words == "empty: nothing that is selected is in 'images'\n", selector
    assert shell("get", "images").out == "cat\n"


def test_get_takes_only_what_is_selected_and_shows_headers(shell: Shell) -> None:
    for number in (1, 2, 3):
        shell("put", "orders", f"order {number}", "-H", f"n:={number}")
    assert shell("get", "orders", "--selector", "n > 1", "--headers", "-n", "5", "--timeout", "0").lines == [
        "1  n=2  order 2",
        "2  n=3  order 3",
    ]
    shell("get", "orders", "--selector", "n >", expected=2)
    shell("get", "orders", "--raw", "--headers", expected=2)
    assert shell("get", "orders").out == "order 1\n"
