"""On a terminal: no message commands it, colours can be turned off, a long input shows how far it is."""

import sys
from pathlib import Path

from tests.cli.shell import Shell


def test_control_characters_of_a_message_do_not_reach_a_terminal(shell: Shell) -> None:
    evil = "red \x1b[31m alert\x07 \u202etxet"
    shell("put", "orders", evil, "-H", "note=\x1b[2J")
    shown = shell.on_terminal("peek", "orders", "--headers").out
    assert shown == "0  note=\\x1b[2J  red \\x1b[31m alert\\x07 \\u202etxet\n"
    assert "\x1b" not in shell.on_terminal("peek", "orders", "--json").out
    assert shell("peek", "orders").out == f"{evil}\n"


def test_a_table_has_a_bold_head_unless_no_color_is_set(shell: Shell) -> None:
    assert shell.on_terminal("ls").out.startswith("\x1b[1mqueue")
    shell.environment["NO_COLOR"] = "1"
    assert shell.on_terminal("ls").out.startswith("queue")
    assert shell("ls").out.startswith("queue")


def test_put_without_a_body_on_a_terminal_asks_for_one(shell: Shell) -> None:
    outcome = shell.on_terminal("put", "orders")
    assert outcome.code == 2
    assert "give one" in outcome.out


def test_a_long_input_shows_how_far_it_is(shell: Shell, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("1\n2\n3\n")
    # Long is what takes a second; here everything is long.
    source = "import sys, shmq.cli.main as m, shmq.cli.progress as p; p._SHORT = 0; m.main(sys.argv[1:])"
    with lines.open("rb") as stdin:
        arguments = ("put", "orders", "-", "--lines")
        outcome = shell.on_terminal(*arguments, stdin=stdin, program=[sys.executable, "-c", source])
    assert outcome.code == 0
    assert "3 messages" in outcome.out
    assert shell("get", "orders", "-n", "9", "--timeout", "0").out == "1\n2\n3\n"


def test_a_short_input_shows_nothing(shell: Shell, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("1\n2\n")
    with lines.open("rb") as stdin:
        assert shell.on_terminal("put", "few", "-", "--lines", stdin=stdin).out == ""
