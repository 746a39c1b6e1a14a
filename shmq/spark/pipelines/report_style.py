"""How the report of pipelines looks."""

from __future__ import annotations

from typing import Final

__all__ = ["STYLE"]

STYLE: Final = """\
:root { color-scheme: light dark; --paper: #fbfbf9; --card: #fff; --ink: #1c2127; --soft: #666e78; --rule: #e3e5e8;
  --a: #2467d1; --b: #b86e00; --c: #c2342f; --d: #2a8a4f; --e: #7a4fc0; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --card: #1b1f25; --ink: #e7e9ec; --soft: #9aa3ae;
  --rule: #2d333b; --a: #74a9ff; --b: #e5a544; --c: #ff8078; --d: #63cc8f; --e: #b795f5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { margin: 0; font-size: 26px; line-height: 1.25; }
h2 { margin: 44px 0 12px; font-size: 19px; }
h3 { margin: 0 0 2px; font-size: 15px; overflow-wrap: anywhere; }
p { margin: 4px 0; max-width: 80ch; }
.soft, .tick, figcaption, th { color: var(--soft); }
.totals { display: flex; flex-wrap: wrap; gap: 12px; margin: 22px 0 0; padding: 0; list-style: none; }
.totals li { flex: 1 1 130px; padding: 12px 16px; background: var(--card); border: 1px solid var(--rule);
  border-radius: 8px; }
.totals b { display: block; font-size: 26px; line-height: 1.2; font-variant-numeric: tabular-nums; }
.totals .bad b { color: var(--c); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 16px; }
.card, figure { margin: 0; padding: 14px 16px; background: var(--card); border: 1px solid var(--rule);
  border-radius: 8px; }
figcaption { font-size: 13px; margin-bottom: 6px; }
svg { display: block; width: 100%; height: auto; }
.tick { font-size: 11px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--rule); }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.line.a { stroke: var(--a); } .line.b { stroke: var(--b); } .line.c { stroke: var(--c); } .line.d { stroke: var(--d); }
.dot.a, .key.a { fill: var(--a); background: var(--a); } .dot.b, .key.b { fill: var(--b); background: var(--b); }
.dot.c, .key.c { fill: var(--c); background: var(--c); } .dot.d, .key.d { fill: var(--d); background: var(--d); }
.line.e { stroke: var(--e); } .dot.e, .key.e { fill: var(--e); background: var(--e); }
.area { fill: var(--a); opacity: .14; }
.hit { fill: transparent; } .hit:hover { fill: var(--a); opacity: .12; }
.legend { display: flex; gap: 16px; font-size: 13px; margin: 0 0 4px; }
.key { display: inline-block; width: 10px; height: 10px; margin-right: 6px; border-radius: 50%; }
.scroll { overflow-x: auto; padding: 0; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { padding: 8px 14px; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
th { font-weight: 500; white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.theirs { font-family: ui-monospace, monospace; font-size: 13px; overflow-wrap: anywhere; min-width: 12ch; }
.bar { display: block; height: 6px; margin-top: 6px; border-radius: 3px; background: var(--rule); }
.bar i { display: block; height: 100%; border-radius: 3px; background: var(--c); }
.bar.calm i { background: var(--b); }
@media print { figure, .card { break-inside: avoid; } }
"""
