"""shmq and Spark: queues as sources and sinks of PySpark, by the format "shmq".

Importing this needs neither PySpark nor pyarrow nor Java; `pip install 'shmq[spark]'` brings the first two.
"""

import typing

if typing.TYPE_CHECKING:
    from shmq.spark.session import local_session
    from shmq.spark.warm.function import map_in_pool

__all__ = ["local_session", "map_in_pool"]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> typing.Any:
    if name == "local_session":
        from shmq.spark.session import local_session

        return local_session
    if name == "map_in_pool":
        from shmq.spark.warm.function import map_in_pool

        return map_in_pool
    raise AttributeError(f"module 'shmq.spark' has no attribute {name!r}")
