"""The protocols as models, searched exhaustively by spin; a model with a seeded fault must be found guilty.

A search that finds nothing proves something only if it was complete and if it can find something. So each correct model
must end with "errors: 0" over its whole state space, and each `-DBUG=n` with a violated assertion or a wrong end state.
SHMQ_FULL=1 adds the searches that take minutes or gigabytes.
"""

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

MODELS = Path(__file__).parent
FULL = os.environ.get("SHMQ_FULL") == "1"
SEARCH_SECONDS = 1500
ERRORS = re.compile(r"errors: (\d+)")
GUILTY = re.compile(r"assertion violated|invalid end state")
# Each of these says that states were left out.
INCOMPLETE = ("out of memory", "max search depth too small", "search not completed", "hash-table full")


@dataclass(frozen=True)
class Search:
    """One run: a model, its options, and how pan looks at it. `hash_bits` is the size of its table of states."""

    model: str
    options: str = ""
    build: str = ""
    run: str = ""
    hash_bits: int = 24
    full: bool = False

    @property
    def is_faulty(self) -> bool:
        return "BUG" in self.options

    def __str__(self) -> str:
        return " ".join([self.model, *self.options.split()])


# Bit state with a random order (seed in `run`): only to find a fault sooner, never to show that there is none.
BY_CHANCE = "-DBITSTATE -DT_RAND -DP_RAND"

# States taken apart: half as large, and the search takes half as long again. For those that would need many gigabytes.
SMALL = "-DCOLLAPSE"

# The shortest way to a fault is not far, and a search in depth without a limit goes past it for minutes.
BREADTH_FIRST = "-DBFS"

# A dead process stays where it is. Partial order reduction does not allow for that, and it is no wrong end (-E).
WITH_DEATHS = "-DNOREDUCE"

# Most of a verifier is the table of the transitions and what each of them does. To optimise that takes longer than most
# searches, which spend their time with the table of states.
NOT_OPTIMISED = """
typedef struct Trans Trans;
__attribute__((optimize("O0"))) unsigned char do_transit(Trans *, short);
__attribute__((optimize("O0"))) void settable(void);
"""

CORRECT = [
    Search("slot_ring", hash_bits=25),
    Search("slot_ring", "-DONLY_ACQUIRED", SMALL, hash_bits=25, full=True),
    Search("slot_ring", "-DONLY_ACQUIRED -DHOLES=2", SMALL, hash_bits=26, full=True),
    Search("rewind"),
    Search("rewind", "-DWHO=5"),
    Search("rewind", "-DRELEASES=2 -DDEATHS=0"),
    Search("rewind", "-DWHO=5 -DRELEASES=2 -DDEATHS=0"),
    Search("rewind", "-DWHO=7 -DDEATHS=0 -DTAKEOVERS=0", hash_bits=25),
    Search("notify", "-DDEATHS=0 -DWHO=3"),
    Search("notify", "-DWHO=6"),
    Search("rows"),
    Search("room"),
    Search("room", "-DLIMIT=0"),
    Search("room", "-DPUTS=2 -DDEATHS=0"),
    Search("line", "-DPRODUCERS=2 -DDEATHS=0"),
    Search("line", "-DPRODUCERS=2 -DDEATHS=0 -DLIMIT=2"),
    Search("line", "-DPRODUCERS=2 -DDEATHS=0 -DSTOPS=1"),
    Search("line", "-DPRODUCERS=2 -DVICTIM=0"),
    Search("line", "-DPRODUCERS=2 -DVICTIM=3"),
    Search("line", "-DPRODUCERS=2", SMALL, hash_bits=26, full=True),
    Search("block", "-DREAPERS=1"),
    Search("block", "-DSWEEPERS=0"),
    Search("block", SMALL, hash_bits=26, full=True),
    Search("slab", "-DTAKERS=1"),
    Search("slab", "-DHALVES -DDROPPERS=1", "-O2", hash_bits=26),
    Search("slab", "-DDEATHS=0", SMALL, hash_bits=26, full=True),
    Search("move"),
    Search("groups", "-DDEATHS=1"),
    Search("groups", "-DSTOPS=1 -DVAIN=0"),
    Search("groups", "-DENTRIES=3 -DVAIN=0", SMALL, hash_bits=26, full=True),
    Search("readiness"),
    Search("readiness", "-DPREFETCH=1 -DUNASKED=0"),
    Search("readiness", "-DPREFETCH=1 -DPUTS=3", SMALL, full=True),
    Search("readiness", "-DPREFETCH=2 -DPUTS=3", SMALL, full=True),
    Search("watch", "", WITH_DEATHS, "-E"),
    Search("watch", "-DSTOPS=1", f"{SMALL} {WITH_DEATHS}", "-E"),
    Search("watch", "-DSTOPS=2 -DSLEEPERS=3", f"{SMALL} {WITH_DEATHS}", "-E"),
    Search("watch", "-DHOLDER=0", f"{SMALL} {WITH_DEATHS}", "-E", 26, full=True),
]

FAULTY = [
    *(Search("slot_ring", f"-DBUG={bug}") for bug in range(1, 8)),
    *(Search("rewind", f"-DBUG={bug}") for bug in (1, 2, 3, 4, 6, 7, 8, 9)),
    Search("rewind", "-DBUG=5 -DWHO=7 -DRELEASES=2 -DDEATHS=0 -DTAKEOVERS=0", BY_CHANCE, "-RS1", 27),
    *(Search("notify", f"-DBUG={bug} -DDEATHS=0") for bug in (1, 2, 3, 7)),
    Search("notify", "-DBUG=4 -DDEATHS=0 -DWHO=6 -DN0=1"),
    Search("notify", "-DBUG=5 -DWHO=6 -DN0=1"),
    Search("notify", "-DBUG=6 -DDEATHS=0 -DWHO=3 -DN0=1"),
    *(Search("rows", f"-DBUG={bug}") for bug in (1, 2)),
    *(Search("room", f"-DBUG={bug}") for bug in (1, 2, 3, 4, 5, 6, 7, 9, 10)),
    Search("room", "-DBUG=8 -DPUTS=2 -DHOLES=0", run="-m150"),
    *(Search("line", f"-DBUG={bug} -DPRODUCERS=2 -DDEATHS=0") for bug in (1, 2, 3, 4, 5, 9)),
    Search("line", "-DBUG=8 -DPRODUCERS=2 -DDEATHS=0 -DLIMIT=2"),
    Search("line", "-DBUG=6 -DPRODUCERS=2 -DVICTIM=0"),
    Search("line", "-DBUG=7 -DPRODUCERS=2 -DVICTIM=3"),
    *(Search("block", f"-DBUG={bug} -DREAPERS=1") for bug in (1, 2, 3)),
    *(Search("block", f"-DBUG={bug} -DSWEEPERS=0") for bug in (4, 5)),
    *(Search("slab", f"-DBUG={bug} -DDEATHS=0 -DTAKERS=1") for bug in range(1, 6)),
    Search("slab", "-DBUG=6 -DHALVES -DDROPPERS=1 -DDEATHS=0"),
    *(Search("move", f"-DBUG={bug}") for bug in range(1, 6)),
    *(Search("groups", f"-DBUG={bug} -DENTRIES=3 -DVAIN=0", BREADTH_FIRST) for bug in (1, 2, 3)),
    *(Search("groups", f"-DBUG={bug} -DFIRST=0 -DKEEPERS=1 -DVAIN=0 -DRETIRES=0", run="-m140") for bug in (4, 6)),
    Search("groups", "-DBUG=10 -DRELEASES=1 -DKEEPERS=1 -DVAIN=0 -DRETIRES=0", BREADTH_FIRST),
    Search("groups", "-DBUG=5 -DENTRIES=3 -DFIRST=2 -DTHREADS=2 -DVAIN=0", run="-m130"),
    Search("groups", "-DBUG=7 -DENTRIES=3 -DDEATHS=1 -DVAIN=0", BREADTH_FIRST),
    Search("groups", "-DBUG=8 -DTHEFTS=1 -DVAIN=0", BREADTH_FIRST),
    Search("groups", "-DBUG=9 -DFREED=1 -DCONSUMERS=3 -DENTRIES=4 -DVAIN=0 -DRETIRES=0", BY_CHANCE, "-m300 -RS15", 26),
    *(Search("readiness", f"-DBUG={bug} -DUNASKED=0") for bug in (1, 2, 3, 4)),
    *(Search("readiness", f"-DBUG={bug} -DPREFETCH=1 -DUNASKED=0") for bug in (5, 6, 7)),
    *(Search("watch", f"-DBUG={bug}", WITH_DEATHS, "-E -m150") for bug in (1, 2)),
    Search("watch", "-DBUG=3", WITH_DEATHS, "-E"),
    Search("watch", "-DBUG=4 -DHOLDER=0", WITH_DEATHS, "-E"),
    *(Search("watch", f"-DBUG={bug} -DSTOPS=1", WITH_DEATHS, "-E") for bug in (5, 6)),
    *(Search("watch", f"-DBUG={bug} -DSTOPS=2 -DSLEEPERS=3", WITH_DEATHS, "-E") for bug in (5, 6)),
]


def chosen(searches: list[Search]) -> list[Search]:
    return [search for search in searches if FULL or not search.full]


def output_of(search: Search, directory: Path, tool: Callable[[str], str]) -> str:
    """Generates, compiles and runs the verifier of one search in `directory`, and returns what it printed."""

    def call(*words: str, seconds: int = 100) -> str:
        result = subprocess.run(
            words, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds
        )
        return result.stdout

    generated = call(tool("spin"), "-a", *search.options.split(), str(MODELS / f"{search.model}.pml"))
    assert (directory / "pan.c").exists(), generated
    (directory / "not_optimised.h").write_text(NOT_OPTIMISED)
    # A fault is found in less time than it takes to optimise.
    optimise = ["-O0"] if search.is_faulty else ["-O1", "-include", "not_optimised.h"]
    flags = [*optimise, "-w", "-DSAFETY", *search.build.split()]
    compiled = call(tool("cc"), *flags, "-o", "pan", "pan.c")
    assert (directory / "pan").exists(), compiled
    limits = ["-m600000", f"-w{search.hash_bits}", *search.run.split()]
    return call("./pan", *limits, seconds=SEARCH_SECONDS)


@pytest.mark.timeout(SEARCH_SECONDS + 100)
@pytest.mark.parametrize("search", chosen(CORRECT), ids=str)
def test_the_whole_state_space_of_a_protocol_holds_no_error(
    search: Search, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    """Shows G1."""
    output = output_of(search, tmp_path, tool)
    errors = ERRORS.search(output)
    assert errors is not None, output
    assert errors.group(1) == "0", output
    left_out = [word for word in INCOMPLETE if word in output.lower()]
    assert not left_out, output
    assert not search.is_faulty
    assert "BITSTATE" not in search.build, "a search that forgets states proves nothing"


@pytest.mark.timeout(SEARCH_SECONDS + 100)
@pytest.mark.parametrize("search", chosen(FAULTY), ids=str)
def test_a_seeded_fault_of_a_protocol_is_found(search: Search, tmp_path: Path, tool: Callable[[str], str]) -> None:
    output = output_of(search, tmp_path, tool)
    assert search.is_faulty
    assert GUILTY.search(output), output


def test_every_fault_that_a_model_describes_is_seeded_here() -> None:
    described = {
        (path.stem, number)
        for path in MODELS.glob("*.pml")
        for number in re.findall(r"^ \*   (\d+)  ", path.read_text(), re.MULTILINE)
    }
    seeded = {(search.model, match.group(1)) for search in FAULTY if (match := re.search(r"BUG=(\d+)", search.options))}
    assert described == seeded
