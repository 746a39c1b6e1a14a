"""purge, rm, shutdown and reopen: what cannot be undone is asked for."""

from tests.cli.shell import Shell


def test_purge_prints_how_many(shell: Shell) -> None:
    shell("put", "orders", "-", "--lines", given="1\n2\n3\n")
    assert shell("purge", "orders", "--yes").out == "3\n"
    assert shell("purge", "orders", "--yes", "--json").json == {"purged": 0}


def test_without_a_terminal_nothing_is_thrown_away_unless_yes_is_said(shell: Shell) -> None:
    shell("put", "orders", "x")
    for command in (("purge", "orders"), ("rm", "orders"), ("gc", "--discard")):
        assert "--yes" in shell(*command, given="y\n", expected=2).words
    assert shell("peek", "orders").out == "x\n"


def test_a_terminal_is_asked(shell: Shell) -> None:
    shell("put", "orders", "x")
    shell("put", "orders", "later", "--delay", "3600")
    refused = shell.on_terminal("purge", "orders", typed="n\n")
    assert refused.code == 1
    assert "Throw away the ready and delayed messages of 'orders' (2)? [y/N]" in refused.out
    assert shell.on_terminal("purge", "orders", typed="y\n").code == 0
    assert shell.on_terminal("rm", "orders", typed="y\n").code == 0
    assert shell("ls", "--json").json == {"queues": {}}


def test_rm_deletes_and_tells_the_last_counts(shell: Shell) -> None:
    shell("put", "orders", "x")
    assert shell("rm", "orders", "--yes", "--json").json["deleted"]["ready"] == 1
    shell("get", "orders", "--timeout", "0", expected=3)


def test_a_queue_that_is_shut_down_drains_and_can_be_reopened(shell: Shell) -> None:
    shell("put", "orders", "x")
    assert shell("shutdown", "orders", "--json").json["shut_down"] is True
    assert "orders (shut down)" in shell("ls").out
    assert shell("put", "orders", "y", expected=1).words.startswith("shut down: ")
    assert shell("get", "orders").out == "x\n"
    assert shell("reopen", "orders", "--json").json["shut_down"] is False
    shell("put", "orders", "y")


def test_an_immediate_shutdown_keeps_the_messages(shell: Shell) -> None:
    shell("put", "orders", "x")
    shell("shutdown", "orders", "--immediate")
    shell("get", "orders", expected=1)
    shell("reopen", "orders")
    assert shell("get", "orders").out == "x\n"


def test_purge_peek_and_tail_take_a_selector(shell: Shell) -> None:
    for kind in ("png", "jpeg", "png"):
        shell("put", "images", kind, "--header", f"kind={kind}")
    assert shell("peek", "images", "--selector", "kind LIKE 'p%'").out == "png\npng\n"
    none = shell("peek", "images", "--selector", "kind = 'gif'", expected=4)
    assert (none.out, "nothing that is selected" in none.words) == ("", True)
    asked = shell.on_terminal("purge", "images", "--selector", "kind = 'png'", typed="n\n")
    assert "of 'images' (2)?" in asked.out + asked.words
    assert shell("purge", "images", "--selector", "kind = 'png'", "--yes").out == "2\n"
    assert shell("peek", "images").out == "jpeg\n"
    for command in ("peek", "tail", "purge"):
        refused = shell(command, "images", "--selector", "kind =", *["--yes"][: command == "purge"], expected=2)
        assert "malformed at character 7" in refused.words


def test_move_prints_how_many_and_copy_leaves_them(shell: Shell) -> None:
    for n in range(4):
        shell("put", "numbers", str(n), "--header", f"odd={'yes' if n % 2 else 'no'}")
    shell("declare", "archive")
    assert shell("move", "numbers", "archive", "-n", "1").out == "1\n"
    assert shell("move", "numbers", "archive", "--selector", "odd = 'yes'", "--json").json == {"moved": 2}
    assert shell("move", "numbers", "archive", "--copy").out == "1\n"
    assert shell("peek", "archive").out == "0\n1\n3\n2\n"
    assert shell("peek", "numbers").out == "2\n"
    assert "itself" in shell("move", "numbers", "numbers", expected=2).words
    assert "shmq declare" in shell("move", "numbers", "nowhere", expected=3).words
