"""The links of the documentation lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.repo.tree import ROOT, name_of

PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path.exists()]
FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
CODE_SPAN = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[[^\]]*\]\(<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


def links(text: str) -> list[str]:
    prose = CODE_SPAN.sub("", FENCE.sub("", text))
    return [first or second for first, second in LINK.findall(prose)]


def anchors(text: str) -> set[str]:
    """Returns the anchors of the headings the way GitHub makes them."""
    titles = [heading.replace("`", "").lower() for heading in HEADING.findall(FENCE.sub("", text))]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def is_broken(page: Path, link: str) -> bool:
    if OUTSIDE.match(link):
        return False
    target, _, anchor = link.partition("#")
    path = (page.parent / target).resolve() if target else page
    if not path.exists() or not path.is_relative_to(ROOT):
        return True
    return bool(anchor) and path.suffix == ".md" and anchor not in anchors(path.read_text())


def test_relative_links_resolve() -> None:
    broken = [f"{name_of(page)}: {link}" for page in PAGES for link in links(page.read_text()) if is_broken(page, link)]
    assert not broken, "\n".join(broken)


def test_broken_links_and_anchors_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`\n[a](page.md#one-two) [b](no.md) [c](#three) [d](https://x.org)\n```\n[e](no)\n```\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert [link for link in links(page.read_text()) if is_broken(page, link)] == ["no.md", "#three"]


def places_of_the_tree() -> list[str]:
    """The map of README.md has to name each folder right below shmq, native and tests, and each command of tools."""
    folders = [
        path for top in ("native", "shmq", "tests") for path in (ROOT / top).iterdir() if any(path.glob("**/*.[chp]*"))
    ]
    names = [name_of(path) for path in folders if path.is_dir() and not path.name.startswith((".", "__"))]
    commands = [path for path in (ROOT / "tools").iterdir() if path.is_file() and not path.suffix]
    return sorted(names + [name_of(path) for path in commands])


def not_on_the_map(page: str, places: list[str]) -> list[str]:
    tree = page[page.index("## The tree") :]
    named = set(re.findall(r"`([\w/]+)`", tree))
    # Of the package they stand without its name.
    return [place for place in places if place not in named and place.removeprefix("shmq/") not in named]


def test_the_map_of_the_tree_names_each_folder_and_each_command() -> None:
    page = (ROOT / "README.md").read_text()
    places = places_of_the_tree()
    assert {"native/weak", "shmq/engine", "tests/crash", "tools/run"} <= set(places)
    assert not_on_the_map(page, places) == []
    assert not_on_the_map("## The tree\n`engine`, `tests/unit`", ["shmq/engine", "shmq/mp", "tests/mp"]) == [
        "shmq/mp",
        "tests/mp",
    ]


def test_what_the_map_of_the_tree_names_is_there() -> None:
    page = (ROOT / "README.md").read_text()
    named = re.findall(r"`((?:native|tests|tools|docs|bench)/[\w/.]*)`", page[page.index("## The tree") :])
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_index_of_the_pages_names_each_of_them() -> None:
    index = ROOT / "docs" / "README.md"
    named = {link.partition("#")[0] for link in links(index.read_text())}
    pages = [path.relative_to(index.parent).as_posix() for path in PAGES if path.is_relative_to(index.parent)]
    assert [page for page in pages if page not in named and page != index.name] == []
