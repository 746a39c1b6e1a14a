"""Draws the state machines of docs/pictures from tools/pictures.toml.

    tools/pictures [--check]

--check writes nothing; the exit code is 1 if a picture is not what would be drawn.
"""

import sys
import tomllib
from dataclasses import dataclass
from math import hypot
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tools" / "pictures.toml"
FOLDER = ROOT / "docs" / "pictures"
HALF_HEIGHT = 26
GAP = 4  # between the head of an arrow and a box
# A background of its own, and colours that are read on it: pages are light or dark.
STYLE = """
  text { font-family: system-ui, 'DejaVu Sans', Arial, sans-serif; fill: #1b2733; text-anchor: middle; }
  .title { font-size: 20px; font-weight: 600; }
  .name { font-size: 14px; font-weight: 600; }
  .what, .note { font-size: 11px; fill: #45566a; }
  .number { font-size: 12px; font-weight: 600; fill: #8a3b12; }
  .halo { font-size: 12px; font-weight: 600; fill: #fbfcfd; stroke: #fbfcfd; stroke-width: 5px; }
  .box { fill: #e4eef8; stroke: #33587c; stroke-width: 1.5; }
  .any { fill: #fbfcfd; stroke: #33587c; stroke-width: 1.5; stroke-dasharray: 4 3; }
  .arrow { fill: none; stroke: #5b6b7c; stroke-width: 1.4; }
"""

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A state. "any" stands for all of them."""

    name: str
    x: int
    y: int
    what: str
    loops: list[str]

    @property
    def text(self) -> str:
        return self.what if not self.loops else f"{self.what} · ↻ {' '.join(self.loops)}"

    @property
    def half_width(self) -> int:
        return max(5 * len(self.name) + 16, 3 * len(self.text) + 14, 56)

    def border(self, inside: Point, outside: Point) -> Point:
        """Where the line from a point inside leaves the box."""
        dx, dy = outside[0] - inside[0], outside[1] - inside[1]
        shares = [1.0]
        for d, at, middle, half in ((dx, inside[0], self.x, self.half_width), (dy, inside[1], self.y, HALF_HEIGHT)):
            if d:
                shares.append((middle + (half + GAP) * (1 if d > 0 else -1) - at) / d)
        share = min(share for share in shares if share > 0)
        return inside[0] + dx * share, inside[1] + dy * share

    def lines(self) -> list[str]:
        kind, x, y, half = "any" if self.name == "any" else "box", self.x, self.y, self.half_width
        size = f'width="{2 * half}" height="{2 * HALF_HEIGHT}" rx="8"'
        return [
            f'<g class="state" data-state="{escape(self.name)}" data-loops="{" ".join(self.loops)}">',
            f'<rect class="{kind}" x="{x - half}" y="{y - HALF_HEIGHT}" {size}/>',
            f'<text class="name" x="{x}" y="{y - 3}">{escape(self.name)}</text>',
            f'<text class="what" x="{x}" y="{y + 14}">{escape(self.text)}</text>',
            "</g>",
        ]


def straight(source: Box, target: Box, shift: float, share: float) -> tuple[str, Point]:
    """The path from border to border, moved sideways by `shift`, and where its number stands."""
    dx, dy = target.x - source.x, target.y - source.y
    length = hypot(dx, dy)
    aside = -dy / length * shift, dx / length * shift
    begin, end = (source.x + aside[0], source.y + aside[1]), (target.x + aside[0], target.y + aside[1])
    begin, end = source.border(begin, end), target.border(end, begin)
    at = begin[0] + (end[0] - begin[0]) * share, begin[1] + (end[1] - begin[1]) * share
    return f"M{begin[0]:.0f} {begin[1]:.0f} L{end[0]:.0f} {end[1]:.0f}", at


def arrow(number: str, source: Box, target: Box, way: list[Any]) -> list[str]:
    path, at = (way[0], way[1]) if isinstance(way[0], str) else straight(source, target, way[0], way[1])
    place = f'x="{at[0]:.0f}" y="{at[1] + 4:.0f}"'
    return [
        f'<g class="transition" data-number="{number}" data-from="{source.name}" data-to="{target.name}">',
        f'<path class="arrow" d="{path}" marker-end="url(#head)"/>',
        f'<text class="halo" {place}>{number}</text><text class="number" {place}>{number}</text>',
        "</g>",
    ]


def drawn(machine: dict[str, Any]) -> str:
    """The picture as the text of an SVG file."""
    width, height = machine["width"], machine["height"]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label="{machine["title"]}">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0.5 L8 4 L0 7.5 z" fill="#5b6b7c"/></marker></defs>',
        f'<rect width="{width}" height="{height}" rx="10" fill="#fbfcfd"/>',
        f'<text class="title" x="{width // 2}" y="34">{machine["title"]}</text>',
        f'<text class="note" x="{width // 2}" y="{height - 18}">{escape(machine["note"])}</text>',
    ]
    boxes = {
        name: Box(name, x, y, what, [number for number, states in machine["loops"].items() if name in states])
        for name, (x, y, what) in machine["states"].items()
    }
    for number, ways in machine["arrows"].items():
        for source, target, *way in ways:
            lines += arrow(number, boxes[source], boxes[target], way)
    for one in boxes.values():
        lines += one.lines()
    return "\n".join([*lines, "</svg>", ""])


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    differ = []
    for name, machine in tomllib.loads(TABLE.read_text()).items():
        path, text = FOLDER / f"{name}-states.svg", drawn(machine)
        if not path.exists() or path.read_text() != text:
            differ.append(path.name)
        if not arguments:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text)
    if arguments and differ:
        print(f"not as tools/pictures draws them: {', '.join(differ)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
