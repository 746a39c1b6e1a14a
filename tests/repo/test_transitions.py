"""Each transition of a slot word has a number: in the table of the ring's page, at its CAS, and in a model.

A state machine that is written three times drifts apart unless somebody compares. Transitions without a model
stand in a table of their own, with the reason.
"""

import re

import pytest

from tests.repo.tree import ROOT, files, name_of

NUMBER = re.compile(r"\bT(\d+)\b")
ROW = re.compile(r"^\| T(\d+) \|", re.MULTILINE)
PROTOCOL = ROOT / "docs" / "protocol-ring.md"
VERIFICATION = ROOT / "docs" / "verification.md"
WITHOUT_MODEL = "\n## Transitions without a model\n"
# Anything that writes a slot's word; and the one function that does it on behalf of its callers.
CHANGE = re.compile(r"\bshmq_(?!load_)(\w+)\(\s*&(?:slot|shmq_slot_at\([^;]*?\))->word\b")
FREES = re.compile(r"\bshmq_slot_free\(")
DEFINITION = re.compile(r"^(?:static )?bool shmq_slot_free\(", re.MULTILINE)
SLOT_VARIABLE = re.compile(r"\bshmq_slot_shm \*\s*(\w+)\s*[=;,)]")


def in_docs() -> set[int]:
    return {int(number) for number in ROW.findall(PROTOCOL.read_text())}


def without_model() -> set[int]:
    _, _, section = VERIFICATION.read_text().partition(WITHOUT_MODEL)
    section, _, _ = section.partition("\n#")
    return {int(number) for number in ROW.findall(section)}


def in_sources() -> set[int]:
    return {int(number) for path in files("native/src", ".c") for number in NUMBER.findall(path.read_text())}


def in_models() -> set[int]:
    models = [path for suffix in (".pml", ".py") for path in files("tests/protocols", suffix)]
    return {int(number) for path in models for number in NUMBER.findall(path.read_text())}


def end_of_call(text: str, start: int) -> int:
    """Returns where the call that begins at `start` has its last bracket."""
    depth = 0
    for at in range(text.index("(", start), len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return len(text)


def unnumbered(text: str) -> list[tuple[int, str]]:
    """Returns line and text of each change of a slot word without a number, on its lines or on the one before."""
    wrong = []
    defined = {match.end() for match in DEFINITION.finditer(text)}
    changes = [*CHANGE.finditer(text), *(match for match in FREES.finditer(text) if match.end() not in defined)]
    for match in changes:
        first = text.rfind("\n", 0, match.start()) + 1
        before = text.rfind("\n", 0, max(first - 1, 0)) + 1
        last = text.find("\n", end_of_call(text, match.start()))
        if not NUMBER.search(text[before : last if last >= 0 else len(text)]):
            wrong.append((text.count("\n", 0, match.start()) + 1, text[first:last].strip()))
    return wrong


def test_the_sources_make_exactly_the_transitions_of_the_docs() -> None:
    """Shows S77."""
    assert in_sources() == in_docs()


def test_each_transition_is_in_a_model_or_has_a_reason_not_to_be() -> None:
    assert in_models() | without_model() == in_docs()
    assert not in_models() & without_model(), "these have a model: take them off the table"


def test_each_change_of_a_slot_word_has_the_number_of_its_transition() -> None:
    wrong = [
        f"{name_of(path)}:{line}: {text}"
        for path in files("native/src", ".c")
        for line, text in unnumbered(path.read_text())
    ]
    assert not wrong, "which transition is this? T<n> of docs/protocol-ring.md:\n" + "\n".join(wrong)


def test_a_slot_word_is_changed_by_compare_and_swap_only() -> None:
    """Shows S6."""
    wrong = [
        f"{name_of(path)}: {match.group()}"
        for path in files("native", ".c", ".h")
        if "tests" not in path.parts
        for match in CHANGE.finditer(path.read_text())
        if match.group(1) != "cas_seq"
    ]
    assert not wrong, "a store would not see what has changed meanwhile:\n" + "\n".join(wrong)


def test_a_pointer_to_a_slot_is_called_slot_so_that_its_changes_are_found() -> None:
    wrong = [
        f"{name_of(path)}: {match.group()}"
        for path in files("native/src", ".c")
        for match in SLOT_VARIABLE.finditer(path.read_text())
        if match.group(1) != "slot"
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("x();\n    shmq_cas_seq(&slot->word, a, b);\n", 1),
        ("x();\n    shmq_cas_seq(&slot->word, a, b); /* T4 */\n", 0),
        ("/* T29 */\n    shmq_cas_seq(&slot->word, a,\n      f(b));\n", 0),
        ("x();\n    shmq_cas_seq(&slot->word, a,\n      f(b)); /* T11: why */\n", 0),
        ("/* T4 */\n\n    if (shmq_slot_free(q, slot, word)) {\n", 1),
        ("x();\n    shmq_or_seq(&shmq_slot_at(q, p)->word, a);\n", 1),
        ("x();\n    shmq_load_seq(&slot->word);\n", 0),
        ("x();\nbool shmq_slot_free(shmq_queue *q) {\n", 0),
    ],
)
def test_a_change_without_a_number_is_noticed(source: str, count: int) -> None:
    assert len(unnumbered(source)) == count
