"""By this package Spark finds the format "shmq" by itself.

When Spark is first asked for a format that it does not know itself, it starts a process of its own. That one imports
every package in the path whose name begins with pyspark_, and asks it for DefaultSource. This one comes with each shmq,
also where its needs for Spark were not installed. An error of one package would take such formats of all others from
Spark. So it has none: then there is no DefaultSource, and whoever asks for it is told why.
"""

from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name != "DefaultSource":
        raise AttributeError(f"module 'pyspark_shmq' has no attribute {name!r}")
    try:
        from shmq.spark.source import ShmqDataSource

        return ShmqDataSource
    except ImportError as error:
        raise AttributeError(
            f"the format 'shmq' of Spark is not there: {error}; pip install 'shmq[spark]' brings its packages"
        ) from error
