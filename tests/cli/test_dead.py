"""dead: what died, where and why, and where it lies."""

import re

import shmq
from tests.cli.shell import Shell


def test_dead_letters_are_listed_with_queue_reason_error_and_age(shell: Shell) -> None:
    with shmq.open(shell.directory) as broker:
        orders, parcels = broker.queue("orders", max_attempts=1), broker.queue("parcels", dead_letter="lost")
        orders.put("a")
        try:
            raise ConnectionError("no\tcarrier")
        except ConnectionError as error:
            orders.receive(timeout=0).retry(error)
        parcels.put("b")
        parcels.receive(timeout=0).reject("no customer")
        broker.queue("lost").put("not dead, only there")
        broker.queue("other").put("alive")
    lines = shell("dead").lines
    assert [re.split(r"  +", line)[0] for line in lines] == ["died in", "parcels", "orders"]
    assert re.fullmatch(r"parcels  rejected +no customer +lost +\d+ +- +\d+ s", lines[1])
    assert re.fullmatch(r"orders   max_attempts +ConnectionError: no\\tcarrier +orders.dead +\d+ +- +\d+ s", lines[2])
    seen = shell("dead", "orders", "--json").json
    assert (seen["queue"], seen["death"]["queue"], seen["body"]) == ("orders.dead", "orders", "a")
    assert "Traceback" in seen["death"]["error"]
    for name, body in (("lost", "b"), ("parcels", "b"), ("orders.dead", "a")):
        assert shell("dead", name, "--json").json["body"] == body
    assert len(shell("dead", "-n", "1").lines) == 2
    assert shell("peek", "orders.dead").out == "a\n"  # none was taken


def test_where_nothing_is_dead_the_exit_code_is_4(shell: Shell) -> None:
    assert shell("dead", expected=4).words == "empty: nothing is dead\n"
    shell("declare", "orders")
    assert shell("dead", "orders", expected=4).words == "empty: nothing of 'orders' is dead\n"
    assert "no queue 'nowhere'" in shell("dead", "nowhere", expected=3).words


def test_declare_lists_the_options_with_defaults(shell: Shell) -> None:
    shown = shell("declare", "--help").out
    for option in shmq.QueueOptions.__annotations__:
        assert re.search(rf"^ +{option}: .*\S", shown, re.MULTILINE), option
    assert "Default 20." in shown
    assert "fixed" in shown
