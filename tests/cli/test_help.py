"""Help, version, and where options may stand."""

import subprocess
import sys

import click
import pytest

from shmq.cli.root import root
from shmq.version import __version__
from tests.cli.shell import Shell
from tests.repo.tree import ROOT


def every_command() -> list[str]:
    """All of them, with those that have commands of their own below: "bench" and "bench latency"."""
    context = click.Context(root)
    found = []
    for name in root.list_commands(context):
        found.append(name)
        command = root.get_command(context, name)
        if isinstance(command, click.Group):
            found += [f"{name} {member}" for member in command.commands]
    return found


COMMANDS = every_command()


def test_the_commands_are_those_of_the_documentation() -> None:
    """The page has a heading for each, so that none is left out here or there."""
    page = (ROOT / "docs" / "commands.md").read_text()
    top = [name for name in COMMANDS if " " not in name]
    assert [name for name in top if f"`{name}" not in page and f"shmq {name}" not in page] == []
    assert {"put", "work", "bench", "bench latency", "demo"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_has_an_example(bare: Shell, command: str) -> None:
    shown = bare(*command.split(), "--help").out
    assert "Example:\n" in shown
    assert f"shmq {command}" in shown or "shmq -d" in shown


@pytest.mark.parametrize("words", [("demo",), ("bench", "latency")], ids=" ".join)
@pytest.mark.parametrize("place", ["before", "behind"])
def test_a_directory_is_refused_where_it_would_mean_nothing(bare: Shell, words: tuple[str, ...], place: str) -> None:
    given = ("-d", str(bare.directory))
    words = (*given, *words) if place == "before" else (*words, *given)
    refused = bare(*words, expected=2).words
    assert "makes brokers of its own" in refused
    assert "leave out -d" in refused
    assert not bare.directory.exists()


def test_the_variable_for_the_directory_does_no_harm_where_it_means_nothing(bare: Shell) -> None:
    assert bare.environment["SHMQ_DIR"]
    assert bare("bench", "latency", "--messages", "10", "--rounds", "1", "--json").json["bench"] == "latency"


def test_the_list_of_commands_names_each_with_a_summary(bare: Shell) -> None:
    shown = bare("--help")
    assert "Example:\n" in shown.out
    listed = {line.split()[0] for line in shown.out.partition("Commands:\n")[2].splitlines()}
    assert listed == {name for name in COMMANDS if " " not in name}


def test_the_version_is_told_with_and_without_other_options(bare: Shell) -> None:
    assert bare("--version").out == f"shmq {__version__}\n"
    assert bare("--json", "--version").out == f"shmq {__version__}\n"


def test_the_version_and_a_listing_load_no_module_of_a_command(bare: Shell) -> None:
    """The version needs not even click; the list of commands needs none of them."""
    look = "import sys, atexit; atexit.register(lambda: print(sorted(m for m in sys.modules if m in {names!r})))\n"
    run = "from shmq.cli.main import main; main({arguments!r})"
    names = ["click", "rich", "numpy", "psutil", "shmq.cli.root", "shmq.cli.look", "shmq.cli.put", "shmq.cli.doctor"]
    for arguments, loaded in ((["--version"], []), (["--help"], ["click", "shmq.cli.root"])):
        source = look.format(names=names) + run.format(arguments=arguments)
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=600, check=True)
        assert done.stdout.splitlines()[-1] == str(loaded)


def test_json_may_stand_before_or_behind_the_command(shell: Shell) -> None:
    shell("put", "orders", "x")
    before, behind = shell("--json", "stat", "orders"), shell("stat", "orders", "--json")
    assert before.json["put"] == behind.json["put"] == 1


def test_the_directory_may_stand_before_or_behind_the_command_or_be_a_url(shell: Shell) -> None:
    directory = shell.environment.pop("SHMQ_DIR")
    shell("-d", directory, "put", "orders", "x")
    assert shell("ls", "-d", directory, "--json").json["queues"]["orders"]["ready"] == 1
    assert shell("--directory", f"shmq://{directory}", "--json", "ls").json["queues"]["orders"]["ready"] == 1


def test_an_option_goes_before_the_variable(shell: Shell) -> None:
    directory = shell.environment["SHMQ_DIR"]
    shell.environment["SHMQ_DIR"] = f"{directory}-other"
    shell("-d", directory, "ls")
    assert shell("ls", expected=3).out == ""


def test_without_a_directory_both_remedies_are_told(bare: Shell) -> None:
    del bare.environment["SHMQ_DIR"]
    words = bare("ls", expected=2).words
    assert "-d DIR" in words
    assert "SHMQ_DIR" in words


def test_an_unknown_command_or_option_is_a_usage_error(bare: Shell) -> None:
    assert "No such command 'frobnicate'" in bare("frobnicate", expected=2).words
    assert "No such option" in bare("ls", "--frobnicate", expected=2).words


def test_a_command_with_a_slip_is_answered_with_the_nearest(bare: Shell) -> None:
    assert "Did you mean 'ls'?" in bare("lss", expected=2).words


def test_completion_proposes_queues(shell: Shell) -> None:
    shell("put", "orders", "x")
    shell("put", "returns", "x")
    shell.environment |= {"_SHMQ_COMPLETE": "bash_complete", "COMP_WORDS": "shmq get or", "COMP_CWORD": "2"}
    assert shell("get", expected=None).lines == ["plain,orders"]


def test_every_command_can_be_loaded() -> None:
    context = click.Context(root)
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        assert command is not None
        assert command.name == name
