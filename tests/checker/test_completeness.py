"""No rule without a test that shows that it can fail."""

import ast
from collections.abc import Iterator

from tests.checker import (
    test_flow_rules,
    test_group_rules,
    test_history,
    test_line_rules,
    test_quiet_rules,
    test_ring_rules,
    test_structure_rules,
)
from tests.repo.tree import ROOT, files

GIVES_A_RULE = {"Measure", "add", "expect", "tell"}


def rules_of(source: str) -> Iterator[str]:
    """The names of rules: what calls that tell of a violation are given as such."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in GIVES_A_RULE:
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    group, dot, rule = argument.value.partition(".")
                    if dot and group.islower() and rule.replace("_", "").isalpha() and rule.islower():
                        yield argument.value


def test_every_rule_is_shown_to_fail() -> None:
    rules = {rule for path in files("tools/checker", ".py") for rule in rules_of(path.read_text())}
    assert len(rules) > 80
    shown = test_structure_rules.DAMAGES.rules | test_ring_rules.DAMAGES.rules | test_quiet_rules.DAMAGES.rules
    shown |= test_group_rules.DAMAGES.rules | test_line_rules.DAMAGES.rules | test_flow_rules.DAMAGES.rules
    shown |= {rule for rule, _, _ in test_history.BROKEN.values()}
    shown |= {
        "quiet.row",
        "quiet.owner",
        "quiet.consumer",
        "quiet.mover",
        "quiet.resident",
    }  # by tests that say who lives, and died
    assert rules - shown == set()
    assert shown - rules == set()


def test_the_judge_was_written_without_the_code_that_it_judges() -> None:
    for path in files("tools/checker", ".py"):
        assert "native" not in path.read_text(), f"{path.relative_to(ROOT)} knows of native code"
