"""The state machine: what several processes do to a queue is done to its model, too, and both agree after each step."""

from tests.model.end_rules import EndRules


class QueueMachine(EndRules):
    """All rules; a subclass gives it the world."""
