"""shmq demo: a real job, a worker killed in the middle of it, and the proof that nothing is missing."""

from __future__ import annotations

import os
import secrets
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.session import Count, Session, pass_session

if TYPE_CHECKING:
    from typing import Self

__all__ = ["demo"]


class _Ending:
    """Ctrl-C and SIGTERM, noted in a `with` block and raised where the run can be ended in good order."""

    def __init__(self) -> None:
        self._number = 0
        self._before: dict[int, Any] = {}

    def _note(self, number: int, frame: object) -> None:
        self._number = number

    def look(self) -> None:
        """Raises KeyboardInterrupt, or SystemExit with code 143, if one came."""
        if self._number == signal.SIGINT:
            raise KeyboardInterrupt
        if self._number:
            raise SystemExit(128 + self._number)

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)


class _Demo(click.Command):
    """Calls itself what the user typed: tools/run starts it, too."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        typed = os.environ.get("SHMQ_DEMO_TYPED")
        if not typed or parent is None:
            return super().make_context(info_name, args, parent, **extra)
        extra |= {"help_option_names": parent.help_option_names, "max_content_width": parent.max_content_width}
        return super().make_context(typed, args, obj=parent.find_object(Session), **extra)


@click.command(cls=_Demo)
@click.option(
    "--input",
    "root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory with *.py files; default: the standard library of this Python.",
)
@click.option("--workers", type=Count(1, 64), help="Processes that parse; default: the CPUs of this process.")
@click.option("--producers", default=2, show_default=True, type=Count(1, 64), help="Processes that read files.")
@click.option("--seed", type=int, help="Of the order of files; printed, for a repeat.")
@click.option("--spark", is_flag=True, help="By Spark in place of the pool: needs PySpark, and Java 17 or later.")
@pass_session
@click.pass_context
def demo(
    context: click.Context,
    session: Session,
    root: Path | None,
    workers: int | None,
    producers: int,
    seed: int | None,
    spark: bool,
) -> None:
    """Parse all modules of the standard library in a pool of workers, and kill one of them half-way.

    Producers put the files into a queue, workers count definitions and imports, results come back over another queue.
    It does the same over multiprocessing.Queue, without the kill, which that does not survive; and in one process
    alone, whose result all must equal. Exit code 1 if shmq lost a file, had one twice, or counted wrong.

    With --spark the files go through shmq into Spark's Structured Streaming. Its Python workers parse them, its SQL
    counts, and the counts come back over shmq. The command kills one of these workers with a file in hand, then the
    driver with all of its processes. Another driver goes on from the checkpoint. No file may have two results.

    Needs no broker and leaves nothing behind. Takes about a minute on two CPUs that have nothing else to do, two with
    --spark. It takes longer where others keep them busy.

    \b
    Example:
      shmq demo
      shmq demo --input ~/src/project --workers 4 --json
      pip install 'shmq[spark-jvm]' && shmq demo --spark
    """
    from shmq.cli.demo_report import PoolReport, SparkReport
    from shmq.demo.process_server import start_process_server
    from shmq.demo.sources import SourceTree, standard_library

    seed = secrets.randbits(32) if seed is None else seed
    tree = SourceTree.found_in(root or standard_library(), seed)
    if not tree.names:
        raise click.UsageError(f"there is no *.py file below {tree.root}; name another directory")
    if spark:
        from shmq.demo.spark_run import check_spark

        check_spark()
    report = (SparkReport if spark else PoolReport)(tree, workers or len(os.sched_getaffinity(0)), producers, seed)
    with _Ending() as ending:
        start_process_server()
        report.run(ending.look)
        ending.look()
    session.result(report.as_json(), report.as_text())
    if not report.found.equal:
        context.exit(1)
