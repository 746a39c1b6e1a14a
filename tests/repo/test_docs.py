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
