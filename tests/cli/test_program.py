"""A day in a shop, as docs/commands.md shows it, line by line."""

import re
from collections.abc import Callable
from pathlib import Path

from tests.cli.shell import Shell
from tests.repo.tree import ROOT

DAY = re.compile(r"^## A day in a shop\n.*?^```python\n(.*?)^```\n\n^```\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
AGE = re.compile(r" +\d+ s ")


def typed(lines: str) -> str:
    """A script that prints each command as it is typed, and then what it says."""
    words = []
    for line in lines.splitlines():
        if line.startswith("$ "):
            command = line.removeprefix("$ ")
            words.append("cat <<'SHOWN'\n" + line + "\nSHOWN\n" + command)
    return "exec 2>&1\n" + "\n".join(words)


def without_ages(text: str) -> list[str]:
    return [AGE.sub(" AGE ", line).rstrip() for line in text.splitlines()]


def test_a_day_in_a_shop(bare: Shell, tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("jq")
    found = DAY.search((ROOT / "docs" / "commands.md").read_text())
    assert found is not None
    handler, lines = found.groups()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "invoices.py").write_text(handler)
    lines = lines.replace("/tmp/shop/broker", str(tmp_path / "broker"))
    assert lines.count("\n$ ") > 10
    done = bare.script(typed(lines))
    assert without_ages(done.stdout) == without_ages(lines)
