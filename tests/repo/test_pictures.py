"""The pictures of the two state machines show the transitions of the tables in docs/protocol-ring.md, and no others."""

import re
from xml.etree import ElementTree

import pytest

from tests.repo.tree import ROOT

PROTOCOL = ROOT / "docs" / "protocol-ring.md"
PICTURES = ROOT / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"
Transition = tuple[str, str, str]

ENTRY = ["FREE", "CLAIMED", "PENDING", "AVAILABLE", "HELD", "OFFERED", "ACQUIRED", "LOCKED", "DEQUEUED"]
ENTRY += ["QUARANTINED", "BROKEN"]
CONSUMER = ["NONE", "NOT INTERESTED", "INTERESTED", "TOLD", "BROWSING"]
MACHINES = {"entry": ("T", ENTRY), "consumer": ("C", CONSUMER)}
IN_USE = {"PENDING", "AVAILABLE", "HELD", "OFFERED", "ACQUIRED", "LOCKED"}  # what the pages call an entry


def states_in(text: str, names: list[str]) -> list[str]:
    """In the order of the text; "any" and "entry" are words for several."""
    found = re.findall("|".join(sorted(names, key=len, reverse=True)), text)
    if re.search(r"\bentry\b", text):
        found += sorted(IN_USE)
    return found + ["any"] * bool(re.search(r"\bany\b", text))


def in_table(kind: str, names: list[str]) -> set[Transition]:
    transitions = set()
    for number, source, target in re.findall(
        rf"^\| ({kind}\d+) \| (.+?) \| (.+?) \|", PROTOCOL.read_text(), re.MULTILINE
    ):
        sources, targets = states_in(source, names), states_in(target, names)
        if target.startswith("the same"):
            transitions |= {(number, state, state) for state in sources}
        elif source.count(",") == target.count(",") == 1 and set(sources) == set(targets):
            transitions |= set(zip([number] * 2, sources, targets, strict=True))  # to and fro
        else:
            transitions |= {(number, one, other) for one in sources for other in targets}
    return transitions


def in_picture(name: str) -> set[Transition]:
    transitions = set()
    for group in ElementTree.parse(PICTURES / f"{name}-states.svg").iter(f"{SVG}g"):
        at = group.attrib
        if at["class"] == "transition":
            transitions.add((at["data-number"], at["data-from"], at["data-to"].removesuffix(", next lap")))
        else:
            transitions |= {(number, at["data-state"], at["data-state"]) for number in at["data-loops"].split()}
    return transitions


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_a_picture_shows_the_transitions_of_the_table(name: str) -> None:
    """Shows S77."""
    told, shown = in_table(*MACHINES[name]), in_picture(name)
    assert len(told) > 15
    assert told == shown, f"not shown: {sorted(told - shown)}; not told: {sorted(shown - told)}"


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_what_is_shown_is_written_there_and_lies_within_the_picture(name: str) -> None:
    root = ElementTree.parse(PICTURES / f"{name}-states.svg").getroot()
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for group in root.iter(f"{SVG}g"):
        texts = [text.text or "" for text in group.iter(f"{SVG}text")]
        assert group.attrib.get("data-number") or group.attrib["data-state"] in texts
        assert not group.attrib.get("data-number") or group.attrib["data-number"] in texts
        for text in group.iter(f"{SVG}text"):
            assert 0 < float(text.attrib["x"]) < width
            assert 0 < float(text.attrib["y"]) < height
