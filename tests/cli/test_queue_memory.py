"""The memory that a queue has for its slots, as the commands show it."""

from tests.cli.shell import Shell


def test_stat_prints_the_memory_of_slots(shell: Shell) -> None:
    shell("put", "q", "1")
    assert shell("stat", "q", "--json").json["reserved_bytes"] == 24 * 1024
    assert any("reserved_bytes" in line and "24.0 KiB" in line for line in shell("stat", "q").lines)
