"""Numbers of a command line, with bounds."""

import argparse


def positive(text: str) -> int:
    """1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: give 1 or more")
    return value


def not_negative(text: str) -> int:
    """0 or more."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text}: give 0 or more")
    return value


def positive_time(text: str) -> float:
    """More than 0, in whatever unit."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: give more than 0")
    return value
