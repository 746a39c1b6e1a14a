"""map_in_pool: a function over the batches of a DataFrame, in a pool of processes on each host."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from shmq.options.value import parse_size
from shmq.pool.signature import check_arguments, check_runs
from shmq.spark.warm.job import Job

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["map_in_pool"]

_RUN = secrets.token_hex(8)  # of this driver


def map_in_pool(
    df: DataFrame,
    handler: Callable[[pa.RecordBatch], pa.RecordBatch | pa.Table],
    schema: StructType | str,
    *,
    initializer: Callable[..., object] | None = None,
    initargs: tuple[Any, ...] = (),
    processes: int = 1,
    in_flight: int = 4,
    memory: int | str = "256MiB",
    idle: float = 60.0,
    directory: str | os.PathLike[str] | None = None,
    encryption_key_file: str | os.PathLike[str] | None = None,
) -> DataFrame:
    """The handler's results for each batch of the frame, from processes that stay warm.

    The processes are a WorkerPool on each host where tasks run. Tasks hand it their batches through shared memory, and
    take the results back in order. The first task starts it; it ends when no task has used it for some time. So a model
    is loaded once for each process of the pool, and not in each Python worker of Spark.

    Arguments:
        df: a DataFrame, of a stream, too.
        handler: gets a pyarrow.RecordBatch, returns one or a pyarrow.Table, of as many rows as it likes. Functions
            travel as with Spark: those of modules by name, others as a copy.
        schema: of the results.
        initializer, initargs: called in each process of the pool before its first batch.
        processes: of the pool on each host.
        in_flight: batches of one task in the pool at most.
        memory: for the batches in the pool, a third of it for those that wait.
        idle: seconds without a task after which the pool ends.
        directory: where pools keep their files; None: the one for temporary files. All tasks of a host have to see it.
        encryption_key_file: a file on each host, with a key. It encrypts batches that do not fit into memory and go to
            disk. None: they lie there in clear, readable by this user.

    A process of the pool that dies is replaced, and its batch is handled again. So handlers may see a batch twice; the
    results have it once. A batch with which three processes have died fails its task. So does a handler that
    raises; the error has its traceback.

    Raises ValueError, TypeError for unfit arguments.

    Example:
        >>> from shmq.spark import local_session, map_in_pool
        >>> def double(batch):
        ...     import pyarrow.compute
        ...     return batch.set_column(0, "id", pyarrow.compute.multiply(batch.column(0), 2))
        >>> spark = local_session()
        >>> map_in_pool(spark.range(3), double, "id long", idle=1).collect()
        [Row(id=0), Row(id=2), Row(id=4)]
        >>> spark.stop()
    """
    for name, number in (("processes", processes), ("in_flight", in_flight)):
        if number < 1:
            raise ValueError(f"{name}={number}: it must be at least 1")
    if not idle > 0:
        raise ValueError(f"idle={idle}: it must be more than 0 seconds")
    for name, call in (("handler", handler), ("initializer", initializer)):
        if not callable(call) and not (name == "initializer" and call is None):
            raise TypeError(f"{name}={call!r}: a function is expected")
        if call is not None:
            check_runs(name, call)
    from pyspark import cloudpickle
    from pyspark.sql.types import StructType

    wanted = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    job = Job(
        calls=cloudpickle.dumps((handler, initializer, check_arguments(initargs))),
        run=_RUN,
        processes=processes,
        memory=parse_size(memory, "memory"),
        idle=float(idle),
        directory=None if directory is None else os.path.abspath(directory),
        key_file=None if encryption_key_file is None else os.path.abspath(encryption_key_file),
        in_flight=in_flight,
        schema=_arrow_schema(df, wanted).serialize().to_pybytes(),
    )

    def in_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from shmq.spark.warm.task import through_pool

        context = TaskContext.get()
        where = "a task" if context is None else f"partition {context.partitionId()}"
        return through_pool(batches, job, where)

    return _map_in_arrow(df, in_task, wanted)


def _arrow_schema(df: DataFrame, schema: StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    settings = df.sparkSession.conf
    zone = settings.get("spark.sql.session.timeZone") or "UTC"
    large = settings.get("spark.sql.execution.arrow.useLargeVarTypes", "false") == "true"
    return to_arrow_schema(schema, timezone=zone, prefers_large_types=large)


def _map_in_arrow(df: DataFrame, function: Callable[..., Any], schema: StructType) -> DataFrame:
    """DataFrame.mapInArrow, which asks for pandas though nothing of it is used: without it, the same plan by hand."""
    from pyspark.errors import PySparkImportError

    try:
        return df.mapInArrow(function, schema)
    except PySparkImportError:
        pass
    from pyspark.sql import DataFrame
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    mapped = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    make: Any = DataFrame
    plan: Any = df
    column: Any = mapped(*[df[name] for name in df.columns])
    frame: DataFrame = make(plan._jdf.mapInArrow(column._jc, False, None), df.sparkSession)
    return frame
