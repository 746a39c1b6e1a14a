"""The faults of tools/mutants still fit the code, and the checks that are to find them exist."""

from mutants import mistake_in, read_table

FEWEST = 15


def test_every_mutant_fits_the_code_and_names_checks() -> None:
    mistakes = [mistake for mutant in read_table() if (mistake := mistake_in(mutant)) is not None]
    assert not mistakes, "mend tools/mutants.toml:\n" + "\n".join(mistakes)


def test_there_are_enough_mutants_and_each_has_its_name() -> None:
    names = [mutant.name for mutant in read_table()]
    assert len(names) == len(set(names))
    assert len(names) >= FEWEST
