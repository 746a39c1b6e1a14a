"""The faults of tools/mutants still fit the code, and the checks that are to find them exist."""

import subprocess
import sysconfig
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from builds.native_build import ROOT
from checks.mutants import Mutant, mistake_in, read_table

FEWEST = 15
LANGUAGE = ("-std=c11", "-D_GNU_SOURCE", "-DPy_LIMITED_API=0x030B0000")
FLAGS = (*LANGUAGE, "-O2", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-")


def fault_in(compiler: str, mutant: Mutant) -> str | None:
    """The errors of a compiler in the file with the mutant; None: it compiles."""
    path = ROOT / mutant.file
    places = [
        f"-I{ROOT / 'native' / 'include'}",
        f"-I{ROOT / 'native' / 'src'}",
        f"-I{path.parent}",
        f"-I{sysconfig.get_path('include')}",
    ]
    text = path.read_text().replace(mutant.old, mutant.new)
    done = subprocess.run([compiler, *places, *FLAGS], input=text, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"{mutant.name}: {done.stderr}"


def test_every_mutant_fits_the_code_and_names_checks() -> None:
    mistakes = [mistake for mutant in read_table() if (mistake := mistake_in(mutant)) is not None]
    assert not mistakes, "mend tools/mutants.toml:\n" + "\n".join(mistakes)


def test_every_mutant_compiles(tool: Callable[[str], str]) -> None:
    compiler = tool("gcc")
    with ThreadPoolExecutor(2) as several:
        faults = [fault for fault in several.map(partial(fault_in, compiler), read_table()) if fault is not None]
    assert not faults, "mend tools/mutants.toml:\n" + "\n".join(faults)


def test_there_are_enough_mutants_and_each_has_its_name() -> None:
    names = [mutant.name for mutant in read_table()]
    assert len(names) == len(set(names))
    assert len(names) >= FEWEST
