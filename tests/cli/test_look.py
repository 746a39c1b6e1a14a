"""ls, stat, ps, declare and init, and what they say in JSON."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

import shmq
from shmq.cli.text import age, escaped, size, table
from shmq.statistics import BrokerStatistics, ProcessInfo, QueueStatistics
from tests.cli.shell import Shell, end

HEALTH = ["damage", "rescues", "deaths"]  # behind the fields of the dataclass


def names(kind: type[BrokerStatistics | ProcessInfo | QueueStatistics]) -> list[str]:
    return [field.name for field in fields(kind)]


def test_ls_shows_a_table_with_thousands_and_sizes(shell: Shell) -> None:
    shell("put", "orders", '{"id": 7, "customer": "ann"}', "--as", "json")
    shell("put", "orders", "later", "--delay", "600")
    shell("put", "numbers", "-", "--lines", given="".join(f"{number}\n" for number in range(1, 1001)))
    lines = shell("ls").lines
    assert lines[0] == "queue    ready  delayed  unsettled    bytes  oldest  consumers"
    assert re.fullmatch(r"numbers  1,000        0          0  2\.8 KiB     \d s          0", lines[1])
    assert re.fullmatch(r"orders       1        1          0     33 B    \s?\d+ s          0", lines[2])


def test_an_empty_broker_has_a_table_without_rows(shell: Shell) -> None:
    assert shell("ls").lines == ["queue  ready  delayed  unsettled  bytes  oldest  consumers"]


def test_stat_has_the_fields_of_the_dataclasses(shell: Shell) -> None:
    shell("put", "orders", "x")
    assert list(shell("stat", "orders", "--json").json) == names(QueueStatistics)
    broker = shell("stat", "--json").json
    assert list(broker) == [*names(BrokerStatistics), *HEALTH]
    assert list(broker["queues"]["orders"]) == names(QueueStatistics)
    assert [line.split()[0] for line in shell("stat", "orders").lines] == names(QueueStatistics)
    assert [line.split()[0] for line in shell("stat").lines] == [*names(BrokerStatistics), *HEALTH]


def test_stat_shows_the_options_that_were_given_as_declare_takes_them(shell: Shell) -> None:
    given = ["maxsize=1000", "retry_delay=1,2.5,60", "lease=30", "max_bytes=4096", "priorities=3", "groups=sticky"]
    shell("declare", "orders", *given, "dead_letter=lost", "live_consumers=2", "expires=0.25")
    shown = shell("stat", "orders", "--options").lines
    assert set(shown) == {*given, "dead_letter=lost", "live_consumers=2", "expires=0.25"}
    options = shell("stat", "orders", "--options", "--json").json
    assert options["name"] == "orders"
    assert options["options"]["retry_delay"] == [1, 2.5, 60]
    assert options["options"].keys() == {line.partition("=")[0] for line in shown}
    assert options["in_force"] | options["options"] == options["in_force"]
    assert options["in_force"]["checksum"] is True
    shell("declare", "copy", *shown)
    assert shell("stat", "copy", "--options", "--json").json["options"] == options["options"]
    shell("stat", "--options", expected=2)
    shell("stat", "nowhere", "--options", expected=3)


def test_a_queue_declared_like_another_has_dead_letters_of_its_own(shell: Shell) -> None:
    shell("declare", "orders", "max_deaths=7")
    shell("declare", "parcels", *shell("stat", "orders", "--options").lines)
    options = shell("stat", "parcels", "--options", "--json").json
    assert options["options"] == {"max_deaths": 7}
    assert options["in_force"]["dead_letter"] == "parcels.dead"
    shell("declare", "plain")
    assert shell("stat", "plain", "--options").out == ""


def test_ps_shows_who_holds_what_but_not_itself(shell: Shell) -> None:
    assert shell("ps", "--json").json == {"processes": []}
    shell("declare", "orders")
    waiting = shell.start("get", "orders", "-n", "2")
    try:
        assert waiting.stdout is not None
        shell("put", "orders", "x")
        assert waiting.stdout.readline() == "x\n"
        (process,) = shell("ps", "--json").json["processes"]
        assert list(process) == names(ProcessInfo)
        assert (process["pid"], process["state"]) == (waiting.pid, "live")
        line = shell("ps").lines[1]
        assert line.startswith("python -m shmq get orders -n 2  live")
        assert str(waiting.pid) in line.split()
        assert shell("stat", "--json").json["processes"] == [process]
    finally:
        end(waiting)


def test_init_makes_a_broker_and_repeats_in_peace(bare: Shell) -> None:
    made = bare("init", "--memory", "16MiB", "--mode", "0700", "--json").json
    assert (made["path"], made["memory"]) == (str(bare.directory), 16 << 20)
    assert bare("init").out == ""
    assert bare("init", "--memory", "16777216").words == ""
    words = bare("init", "--memory", "32MiB", expected=2).words
    assert words.startswith("mismatch: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--disk", "5 apples"), "is not a size"),
        (("--durability", "sync"), "durability belongs to a later stage"),
        (("--memory", "much"), "is not a size"),
        (("--mode", "rwx"), "is not a mode"),
        (("--mode", "0775"), "0o770"),
    ],
)
def test_init_refuses_with_the_text_of_the_library(bare: Shell, arguments: tuple[str, ...], words: str) -> None:
    assert words in bare("init", *arguments, expected=2).words
    assert not Path(bare.directory, "segment").exists()


def test_commands_without_a_broker_say_how_to_make_one(bare: Shell) -> None:
    for arguments in (("ls",), ("put", "orders", "x"), ("check",), ("work", "orders", "json:loads")):
        words = bare(*arguments, expected=3).words
        assert words.startswith("not found: there is no broker")
        assert "shmq init" in words


@pytest.mark.memory
def test_declare_sets_options_that_python_sees(shell: Shell) -> None:
    shown = shell("declare", "orders", "maxsize=100", "checksum=no", "dead_letter=failed", "--json").json
    assert (shown["name"], shown["options"]["maxsize"], shown["options"]["checksum"]) == ("orders", 100, False)
    with shmq.open(shell.directory) as broker:
        assert broker.queue("orders").options == shown["options"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("slot_size=1024", "slot_size=1024 here, 192 since"),
        ("maxsize=5000000000", "0 to 4,294,967,294"),
        ("maxsize=some", "not a whole number"),
        ("checksum=perhaps", "neither true nor false"),
        ("colour=red", "no option 'colour'"),
        ("last_value=key", "later stage"),
        ("slot_size=big", "is not a size"),
        ("lease=soon", "not a number of seconds"),
        ("retry_delay=1,x", "not a number of seconds"),
        ("temporary=true", "leave temporary out"),
        ("maxsize", "NAME=VALUE"),
        ("slot_size=100", "out of range"),
    ],
)
def test_declare_refuses_options_with_exit_code_2(shell: Shell, option: str, words: str) -> None:
    shell("declare", "orders", "maxsize=100")
    assert words in shell("declare", "orders", option, expected=2).words


def test_declare_alters_a_queue_that_is_there_and_leaves_the_rest_as_it_is(shell: Shell) -> None:
    shell("declare", "orders", "maxsize=100", "max_deaths=7")
    shell("put", "orders", "kept")
    shown = shell("declare", "orders", "maxsize=200", "--json").json["options"]
    assert (shown["maxsize"], shown["max_deaths"]) == (200, 7)
    assert shell("get", "orders").out == "kept\n"


def test_a_directory_that_everybody_may_change_is_refused(shell: Shell) -> None:
    shell.directory.chmod(0o777)
    try:
        assert shell("ls", expected=1).words.startswith("failed: everybody may change")
    finally:
        shell.directory.chmod(0o700)


def test_a_name_that_no_queue_can_have_is_refused(shell: Shell) -> None:
    assert '"/"' in shell("put", "a/b", "x", expected=2).words


def test_numbers_are_written_for_people() -> None:
    assert [size(number) for number in (0, 28, 1023, 1024, 2893, 5 << 20, 3 << 40)] == [
        "0 B",
        "28 B",
        "1023 B",
        "1.0 KiB",
        "2.8 KiB",
        "5.0 MiB",
        "3.0 TiB",
    ]
    assert [age(seconds) for seconds in (None, 0.2, 119, 120, 7200, 200_000)] == [
        "-",
        "0 s",
        "119 s",
        "2 min",
        "2 h",
        "2 d",
    ]


def test_wide_characters_keep_the_columns_straight() -> None:
    lines = table(["queue", "n"], [["注文", "1"], ["a", "22"]]).splitlines()
    assert lines == ["queue   n", "注文    1", "a      22"]


def test_control_characters_are_escaped() -> None:
    assert escaped("a\x1b[2J\x9b\u202eb\n") == "a\\x1b[2J\\x9b\\u202eb\n"
    assert escaped("\x1b\udcff", json=True) == "\\u001b\\udcff"
    assert escaped("a\tb\n", line=True) == "a\\tb\\n"


def test_alerts_are_declared_and_shown_as_declare_takes_them(shell: Shell) -> None:
    shell("declare", "orders", "alerts=messages:3,bytes:64KiB,age:60")
    alerts = {"messages": 3, "bytes": 65536, "message_bytes": None, "age": 60.0, "repeat": 30.0}
    found = shell("stat", "orders", "--options", "--json").json
    assert found["options"] == {"alerts": alerts}
    assert found["in_force"]["alerts"] == alerts
    shown = shell("stat", "orders", "--options").out.split()
    assert shown == ["alerts=messages:3,bytes:65536,age:60,repeat:30"]
    shell("declare", "copy", *shown)
    assert shell("stat", "copy", "--options", "--json").json["options"] == {"alerts": alerts}
    shell("declare", "copy", "alerts=none")
    assert shell("stat", "copy", "--options").out.split() == ["alerts=none"]
    for wrong in ("messages", "colour:3", "messages:many", "age:soon", "messages:0"):
        refused = shell("declare", "copy", f"alerts={wrong}", expected=2).words
        assert "alerts" in refused
        assert "Traceback" not in refused


def test_doctor_shows_which_thresholds_are_reached_and_what_was_promised(shell: Shell) -> None:
    shell("declare", "orders", "alerts=messages:2")
    shell("put", "orders", "x")
    assert re.search("^ok +alerts +no queue has reached", shell("doctor").out, re.MULTILINE)
    shell("put", "orders", "x")
    shell("declare", "large", "max_memory=200GiB")
    shown = shell("doctor").out
    assert re.search("^note +alerts +queue 'orders' has 2 messages, its alerts= says 2$", shown, re.MULTILINE)
    assert re.search("^note +memory +the max_memory of its queues is 214,748,364,800 bytes", shown, re.MULTILINE)
