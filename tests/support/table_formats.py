"""Packages that docs/spark.md shows beside Spark: tools/test --spark installs them where pip has them."""

from importlib.util import find_spec

import pytest

TABLE_FORMATS = ("deltalake", "pyiceberg")


def need_table_formats(program: str) -> None:
    """Skips a test whose program imports one that is not here."""
    for name in TABLE_FORMATS:
        if f"from {name}" in program and find_spec(name) is None:
            pytest.skip(f"no {name}: pip has none for this Python")
