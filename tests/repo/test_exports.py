"""`import shmq` gives a complete, sorted list of names, and brings nothing heavy along."""

import os
import subprocess
import sys
import types

HEAVY = ["click", "lmdb", "numpy", "psutil", "pyarrow", "rich", "shmq.bench", "shmq.demo"]


def run(program: str, environment: dict[str, str] | None = None) -> str:
    """Runs a program in a fresh interpreter and returns what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
        cwd="/",
        env=environment,
    )
    return result.stdout.strip()


def test_the_public_names_are_sorted_and_importable() -> None:
    import shmq

    assert list(shmq.__all__) == sorted(set(shmq.__all__))
    missing = [name for name in shmq.__all__ if not hasattr(shmq, name)]
    assert not missing


def test_the_list_of_public_names_is_complete() -> None:
    import shmq

    bound = {
        name
        for name, value in vars(shmq).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert bound <= set(shmq.__all__)
    assert "__version__" in shmq.__all__


def test_the_version_is_that_of_the_installed_distribution() -> None:
    from importlib import metadata

    import shmq

    assert shmq.__version__ == metadata.version("shmq")


def test_import_shmq_brings_in_nothing_heavy() -> None:
    loaded = run(f"import sys, shmq; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded == "[]"


def processor_seconds(module: str, environment: dict[str, str]) -> float:
    return float(
        run(
            f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)",
            environment,
        )
    )


def test_import_shmq_takes_no_more_of_a_processor_than_that_of_asyncio() -> None:
    """Margin: half as much again. The least of each, in turns, so that what disturbs one disturbs both; more
    of them where the machine is busy."""
    # As installed, with bytecode: a shell that forbids writing it would measure the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own = peer = float("inf")
    for number in range(40):
        own = min(own, processor_seconds("shmq", environment))
        peer = min(peer, processor_seconds("asyncio", environment))
        if number >= 9 and own < 1.5 * peer:
            break
    print(f"shmq {own * 1e3:.0f} ms, asyncio {peer * 1e3:.0f} ms")
    assert own < 1.5 * peer
