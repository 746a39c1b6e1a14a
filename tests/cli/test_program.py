"""A day in a shop, as a script for the shell."""

from pathlib import Path

from tests.cli.shell import Shell

SCRIPT = """
shmq init --memory 512MiB
shmq put orders '{"id": 7, "customer": "ann"}' --as json -H source=web
seq 1000 | shmq put numbers - --lines
shmq ls | cut -c 1-43
shmq peek orders --headers
shmq work orders shop.invoices:handle -n 2 --until-empty
shmq get orders --timeout 1; echo $?
shmq --json stat orders | python3 -c 'import json, sys; print(json.load(sys.stdin)["acked"])'
"""

SHOWN = """\
1
queue    ready  delayed  unsettled    bytes
numbers  1,000        0          0  2.8 KiB
orders       1        0          0     44 B
0  source=web  {"id": 7, "customer": "ann"}
4
1
"""


def test_a_day_in_a_shop(bare: Shell, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "invoices.py").write_text(
        "def handle(message):\n    with open('invoices', 'a') as file:\n        file.write(message.body['customer'])\n"
    )
    done = bare.script(SCRIPT)
    assert done.stdout.splitlines() == [line.rstrip() for line in SHOWN.splitlines()]
    assert done.stderr == "empty: nothing came to 'orders' within 1 s\n"
    assert (tmp_path / "invoices").read_text() == "ann"
