"""shmq bench: measure shmq beside multiprocessing.Queue and os.pipe on this machine, in one run."""

from __future__ import annotations

from dataclasses import asdict

import click

from shmq.cli.interruption import loading
from shmq.cli.measuring import json_option, measuring, print_rows, wants_json
from shmq.cli.ratios import ratios
from shmq.cli.session import Count, Seconds
from shmq.quantity import quantity

LARGE = 65536  # bytes; from here on what waits is limited, or the backlog is all that one measures


@click.group()
def bench() -> None:
    """Measure shmq beside multiprocessing.Queue and os.pipe, in turn, in one run: medians and ratios.

    Absolute figures depend on the machine and on what else it does; the ratios are of the same rounds.

    \b
    Example:
      shmq bench throughput --size 64
      shmq bench latency
      shmq bench ratios
    """


bench.add_command(ratios)


@bench.command(short_help="Messages a second through one queue.")
@click.option("--size", default=64, show_default=True, type=Count(1, 1 << 28), help="Bytes of a message.")
@click.option("--producers", default=1, show_default=True, type=Count(1, 64), help="Producer processes.")
@click.option("--consumers", default=1, show_default=True, type=Count(1, 64), help="Consumer processes.")
@click.option("--batch", default=1, show_default=True, type=Count(1, 10000), help="Messages a call, for shmq.")
@click.option("--loan", is_flag=True, help="Also shmq with a loan on one side and a view on the other: no copy.")
@click.option("--maxsize", type=Count(0), help="Most messages waiting, 0: no limit. Default 0; 16 from 64 KiB on.")
@click.option("--rounds", default=5, show_default=True, type=Count(1, 100), help="Rounds; the median counts.")
@click.option("--seconds", default=0.5, show_default=True, type=Seconds(0.01, 60), help="Of a round, about.")
@json_option
def throughput(
    size: int,
    producers: int,
    consumers: int,
    batch: int,
    loan: bool,
    maxsize: int | None,
    rounds: int,
    seconds: float,
) -> None:
    """Messages a second through one queue; also without the checksum of each message, which shows its cost.

    \b
    Example:
      shmq bench throughput
      shmq bench throughput --batch 100
      shmq bench throughput --size 1048576 --loan
      shmq bench throughput --producers 4 --consumers 4
    """
    with loading():
        from shmq.bench.throughput import measure_throughput

    if maxsize is None:
        maxsize = 16 if size >= LARGE else 0
    keys = [*(["shmq-loan"] if loan else []), "shmq", "shmq-unchecked", "multiprocessing", "pipe"]
    if size > 4096 and consumers > 1:
        keys.remove("pipe")  # two readers would share the bytes of one record
    with measuring() as say:
        rows = list(
            measure_throughput(
                keys,
                size=size,
                producers=producers,
                consumers=consumers,
                batch=batch,
                rounds=rounds,
                seconds=seconds,
                maxsize=maxsize,
                progress=say,
            )
        )
    title = (
        f"{quantity(size, 'byte')}, {producers} to {quantity(consumers, 'process')}, batch {batch}, "
        f"median of {quantity(rounds, 'round')}"
    )
    columns = {
        "name": "",
        "messages_per_second": "messages/s",
        "megabytes_per_second": "MB/s",
        "lowest": "slowest",
        "highest": "fastest",
        "ratio": f"{rows[0].name} is x times",
    }
    print_rows(title, rows, columns, maxsize=maxsize)


@bench.command(short_help="From put() to the return of a get() that was asleep.")
@click.option("--size", default=64, show_default=True, type=Count(8, 1 << 28), help="Bytes of a message.")
@click.option("--messages", default=500, show_default=True, type=Count(10), help="Messages a round.")
@click.option("--rounds", default=5, show_default=True, type=Count(1, 100), help="Rounds; the median counts.")
@json_option
def latency(size: int, messages: int, rounds: int) -> None:
    """Microseconds from put() to the return of a get() that was asleep.

    \b
    Example:
      shmq bench latency
    """
    with loading():
        from shmq.bench.latency import measure_latency

    keys = ["shmq", "multiprocessing", "pipe"]
    with measuring() as say:
        rows = list(measure_latency(keys, size=size, messages=messages, rounds=rounds, progress=say))
    columns = {"name": "", "p50": "p50 us", "p90": "p90 us", "p99": "p99 us", "ratio": "shmq takes x times as long"}
    print_rows(f"wake-up from idle, {quantity(size, 'byte')}", rows, columns)


@bench.command(short_help="Entries a second that a selector looks at.")
@click.option("--entries", default=1_000_000, show_default=True, type=Count(1000), help="Entries to look at.")
@click.option("--rounds", default=5, show_default=True, type=Count(1, 100), help="Rounds; the median counts.")
@json_option
def selector(entries: int, rounds: int) -> None:
    """How many entries a second a selector looks at that takes one in 100; beside Python, and a copy of their headers.

    \b
    Example:
      shmq bench selector
    """
    with loading():
        from shmq.bench.selector import SELECTOR, measure_selectors

    with measuring() as say:
        rows = list(measure_selectors(entries=entries, rounds=rounds, progress=say))
    columns = {
        "name": "",
        "entries_per_second": "entries/s",
        "lowest": "slowest",
        "highest": "fastest",
        "ratio": f"{rows[0].name} is x times",
    }
    print_rows(f"{SELECTOR}, {entries:,} entries, CPU time", rows, columns, selector=SELECTOR)


_SCALE_COLUMNS = {
    "name": "",
    "put": "put us",
    "get": "get us",
    "ack": "receive+ack us",
    "put_ratio": "put: times",
    "get_ratio": "get: times",
    "ack_ratio": "ack: times",
}


@bench.command(short_help="put, get and ack in a shallow and in a deep queue.")
@click.option("--depth", default=1_000_000, show_default=True, type=Count(1000), help="Of the deep one.")
@click.option("--messages", default=20_000, show_default=True, type=Count(100), help="Calls a round.")
@click.option("--rounds", default=5, show_default=True, type=Count(1, 100), help="Rounds; the median counts.")
@click.option(
    "--memory", metavar="SIZE", help="Of the broker; further messages lie on disk. Memory for all if not given."
)
@json_option
def depth(depth: int, messages: int, rounds: int, memory: str | None) -> None:
    """CPU time of put, get and ack in a queue of ten messages, and in a deep one. It takes 200 to 400 bytes of memory
    for each message of the depth: a queue has a power of two of slots. With --memory it takes 160 bytes of disk for
    each.

    \b
    Example:
      shmq bench depth --depth 10000000
      shmq bench depth --depth 10000000 --memory 64MiB
    """
    with loading():
        from shmq.bench.scale import measure_depth

    budget = None if memory is None else _bytes(memory, "--memory")
    with measuring() as say:
        rows = list(measure_depth(depth=depth, messages=messages, rounds=rounds, memory=budget, progress=say))
    title = f"CPU time a call, {messages:,} calls a round, median of {quantity(rounds, 'round')}"
    print_rows(title, rows, _SCALE_COLUMNS, memory=budget)


@bench.command(short_help="put, get and ack beside one and beside many registered consumers.")
@click.option("--consumers", default=1000, show_default=True, type=Count(2, 1000), help="Where there are many.")
@click.option("--messages", default=20_000, show_default=True, type=Count(100), help="Calls a round.")
@click.option("--rounds", default=5, show_default=True, type=Count(1, 100), help="Rounds; the median counts.")
@json_option
def consumers(consumers: int, messages: int, rounds: int) -> None:
    """CPU time of put, get and ack in a queue with one registered consumer that does nothing, and with many of them.

    \b
    Example:
      shmq bench consumers --consumers 500
    """
    with loading():
        from shmq.bench.scale import measure_consumers

    with measuring() as say:
        rows = list(measure_consumers(consumers=consumers, messages=messages, rounds=rounds, progress=say))
    title = f"CPU time a call, {messages:,} calls a round, median of {quantity(rounds, 'round')}"
    print_rows(title, rows, _SCALE_COLUMNS)


@bench.command(short_help="Release of the first message beside few and beside many in hand.")
@click.option("--held", default=100_000, show_default=True, type=Count(100), help="In hand, of the many.")
@click.option("--messages", default=20_000, show_default=True, type=Count(100), help="Calls a round.")
@click.option("--rounds", default=5, show_default=True, type=Count(1, 100), help="Rounds; the median counts.")
@json_option
def release(held: int, messages: int, rounds: int) -> None:
    """CPU time of giving back the first message of a queue, and getting it again, beside ten and beside many messages
    in a consumer's hand.

    \b
    Example:
      shmq bench release --held 100000
    """
    with loading():
        from shmq.bench.release import measure_release

    with measuring() as say:
        rows = list(measure_release(held=held, messages=messages, rounds=rounds, progress=say))
    title = f"CPU time a call, {messages:,} calls a round, median of {quantity(rounds, 'round')}"
    columns = {"name": "", "release": "release+receive us", "ratio": "times"}
    print_rows(title, rows, columns)


@bench.command(short_help="Messages a second through a pool of workers, beside multiprocessing.Pool.")
@click.option("--size", default=64, show_default=True, type=Count(0, 1 << 20), help="Bytes of a message.")
@click.option("--messages", default=50_000, show_default=True, type=Count(100), help="Messages a round.")
@click.option("--processes", default=2, show_default=True, type=Count(1, 64), help="Workers of each pool.")
@click.option("--rounds", default=3, show_default=True, type=Count(1, 100), help="Rounds; the median counts.")
@json_option
def pool(size: int, messages: int, processes: int, rounds: int) -> None:
    """The cost of a pool: its handler returns its argument, and the process that feeds the pool takes the results.

    \b
    Example:
      shmq bench pool --messages 200000
    """
    with loading():
        from shmq.bench.pool import measure_pool

    with measuring() as say:
        rows = list(measure_pool(size=size, messages=messages, processes=processes, rounds=rounds, progress=say))
    sizes = f"{quantity(processes, 'worker')}, {size} bytes, {messages:,} messages a round"
    title = f"{sizes}, median of {quantity(rounds, 'round')}"
    columns = {"name": "", "rate": "messages/s", "ratio": "times"}
    print_rows(title, rows, columns)


_BACKLOG_COLUMNS = {
    "name": "",
    "in_per_second": "in/s",
    "out_per_second": "out/s",
    "turn_per_second": "in and out/s",
    "in_ratio": "in: x times",
    "out_ratio": "out: x times",
    "turn_ratio": "both: x times",
    "memory_mib": "memory MiB",
    "grown_mib": "a process MiB",
    "disk_mib": "disk MiB",
}


@bench.command(short_help="Messages a second into and out of a backlog larger than memory.")
@click.option("--messages", default=150_000, show_default=True, type=Count(5000), help="Of the backlog.")
@click.option("--size", default=1024, show_default=True, type=Count(1, 1 << 20), help="Bytes of a message.")
@click.option("--memory", default="64MiB", show_default=True, metavar="SIZE", help="Budget of the broker that flows.")
@click.option("--max-memory", default="16MiB", show_default=True, metavar="SIZE", help="Of its queue, in memory.")
@click.option("--rounds", default=3, show_default=True, type=Count(1, 100), help="Rounds; the median counts.")
@click.option("--directory", metavar="DIR", help="Where the backlog's files go; default that of temporary files.")
@json_option
def backlog(
    messages: int,
    size: int,
    memory: str,
    max_memory: str,
    rounds: int,
    directory: str | None,
) -> None:
    """A process puts all messages, another one takes half of them. A third one puts and takes 1,024 in turn, and then
    takes the rest.

    \b
    They go through
      a queue whose backlog flows to disk
      a queue that has memory for all of it
      SQLite and LMDB used as queues
      a store that drops all bodies at its limit and loads each on demand
      redis, where there is a redis-server

    "x times" is the first line's rate by this one's. Then the command measures the CPU time of put and get in a queue
    that has flowed and was drained.

    It takes 1.5 times the backlog of /dev/shm, and up to twice the backlog of the disk. None of them synchronises to
    disk.

    \b
    Example:
      shmq bench backlog
      shmq bench backlog --messages 2000000 --rounds 1
    """
    with loading():
        from shmq.bench.backlog import measure_backlog
        from shmq.bench.backlog_contestant import Load
        from shmq.bench.overflow import measure_overflow

    load = Load(messages, size, _bytes(memory, "--memory"), _bytes(max_memory, "--max-memory"))
    with measuring() as say:
        held = list(measure_backlog(load, rounds=rounds, directory=directory, progress=say))
        after = list(measure_overflow(size, load.memory, rounds=rounds, directory=directory, progress=say))
    title = f"{messages:,} messages of {size:,} bytes, {max_memory} in memory, median of {quantity(rounds, 'round')}"
    print_rows(title, held, _BACKLOG_COLUMNS, **asdict(load), after=[asdict(row) for row in after])
    if not wants_json():
        columns = {"name": "a queue", "put_get": "put+get us", "share": "of full speed"}
        print_rows("CPU time of a put and its get after an overflow", after, columns)


def _bytes(text: str, option: str) -> int:
    from shmq.options.value import parse_size

    try:
        return parse_size(text, option)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


_OVERLOAD_COLUMNS = {
    "name": "through",
    "put_per_second": "put/s",
    "get_per_second": "get/s",
    "sum_ratio": "both: x times",
    "put_worst_ms": "p99.9 put ms",
    "get_worst_ms": "p99.9 get ms",
}


@bench.command(short_help="A producer and a consumer at full speed beside a backlog.")
@click.option("--messages", default=100_000, show_default=True, type=Count(1000), help="Of the backlog at the begin.")
@click.option("--size", default=64, show_default=True, type=Count(1, 1 << 20), help="Bytes of a message.")
@click.option("--memory", default="256MiB", show_default=True, metavar="SIZE", help="Budget of the broker.")
@click.option("--seconds", default=5.0, show_default=True, type=Seconds(0.1, 3600), help="Of a round.")
@click.option("--rounds", default=3, show_default=True, type=Count(1, 100), help="Rounds; the median counts.")
@click.option("--directory", metavar="DIR", help="Where files go; default that of temporary files.")
@json_option
def overload(
    messages: int,
    size: int,
    memory: str,
    seconds: float,
    rounds: int,
    directory: str | None,
) -> None:
    """A process puts and another one takes, 100 messages a call, each as fast as it can, beside a backlog. They go
    through a queue without options, LMDB used as a queue, and redis where there is a redis-server. "x times" is shmq's
    sum of puts and gets by this one's.

    \b
    Example:
      shmq bench overload
      shmq bench overload --size 1024 --seconds 20
    """
    with loading():
        from shmq.bench.backlog_contestant import Load
        from shmq.bench.overload import measure_overload

    load = Load(messages, size, _bytes(memory, "--memory"), 0)
    with measuring() as say:
        found = list(measure_overload(load, seconds=seconds, rounds=rounds, directory=directory, progress=say))
    title = (
        f"a backlog of {messages:,} messages of {size:,} bytes, {seconds:g} s, median of {quantity(rounds, 'round')}"
    )
    print_rows(title, found, _OVERLOAD_COLUMNS, **asdict(load))


@bench.command(short_help="The cost of a row between Spark and queues.")
@click.option("--rows", default=500_000, show_default=True, type=Count(1000), help="Of each read, write and stream.")
@click.option("--size", default=64, show_default=True, type=Count(0, 1 << 20), help="Bytes of a body.")
@click.option("--cores", default=2, show_default=True, type=Count(1, 64), help="Tasks at a time.")
@click.option(
    "--batch",
    "batches",
    default=(1000, 10_000, 100_000),
    show_default=True,
    multiple=True,
    type=Count(1, 10_000_000),
    help="Rows of a stream's batch; may be repeated.",
)
@click.option("--rounds", default=3, show_default=True, type=Count(1, 100), help="Rounds; the median counts.")
@json_option
def spark(rows: int, size: int, cores: int, batches: tuple[int, ...], rounds: int) -> None:
    """CPU time of all processes for reads, writes and streams of Spark. They go over queues without options, beside a
    source and a sink that do nothing.

    \b
    Example:
      shmq bench spark --rows 1000000
    """
    with loading():
        from shmq.bench.spark import measure_spark

    with measuring() as say:
        measured = measure_spark(rows=rows, size=size, rounds=rounds, cores=cores, batches=batches, progress=say)
        found = list(measured)
    columns = {
        "name": "",
        "row_us": "µs of CPU a row",
        "lowest": "least",
        "highest": "most",
        "ratio": "x of the first of its kind",
    }
    print_rows(f"{rows:,} rows of {size} bytes, local[{cores}]", found, columns)


@bench.command("stream", short_help="The cost of queues in each batch of a stream of Spark.")
@click.option("--rows", default=1000, show_default=True, type=Count(1, 50_000), help="Of a batch.")
@click.option("--batches", default=40, show_default=True, type=Count(1, 900), help="Of each stream.")
@click.option("--seconds", default=10.0, show_default=True, type=Seconds(0.1), help="Of an idle stream.")
@click.option("--cores", default=2, show_default=True, type=Count(1, 64), help="Tasks at a time.")
@json_option
def stream(rows: int, batches: int, seconds: float, cores: int) -> None:
    """Milliseconds of a batch out of a queue, beside Spark's rate source; the CPU time of a stream with nothing to do.

    \b
    Example:
      shmq bench stream --rows 100
    """
    with loading():
        from shmq.bench.spark_stream import measure_streams

    with measuring() as say:
        found = list(measure_streams(rows=rows, batches=batches, seconds=seconds, cores=cores, progress=say))
    columns = {"name": "", "batch_ms": "ms a batch", "adds_ms": "adds", "idle_percent": "idle, % of a core"}
    title = f"{batches:,} batches of {rows:,} rows, local[{cores}]"
    print_rows(title, found, columns)
