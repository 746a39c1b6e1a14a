"""put: one message from the command line or stdin, or one for each line of stdin."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.header import parsed_headers
from shmq.cli.look import complete_queue
from shmq.cli.session import Count, Refused, Seconds, Session, pass_session, say, usage
from shmq.engine.queue.queue import put_settings
from shmq.errors import DecodeError, ShmqError
from shmq.options import check_put_options
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.engine.queue.queue import Queue

__all__ = ["put"]

_CHUNK = 1 << 18


class BadBody(Exception):
    """This body is not what --as says."""


def _encoded(data: bytes, kind: str) -> bytes:
    """The body as it is put. JSON stays as it was written, but it must be some."""
    if kind == "json":
        from shmq.codec_json import decode_finite_json

        try:
            decode_finite_json(memoryview(data))
        except DecodeError as error:
            raise BadBody(f"not JSON: {error.__cause__ or error}") from None
    elif kind == "text":
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise BadBody(f"not UTF-8 at byte {error.start:,}; give --as bytes") from None
    return data


def _codec(kind: str) -> Any:
    """A codec under the standard content type whose bodies are encoded already."""
    from shmq.codec import CONTENT_TYPES, JSON, TEXT, Codec

    if kind == "bytes":
        return "bytes"
    return Codec(CONTENT_TYPES[JSON if kind == "json" else TEXT], encode=bytes, decode=bytes)


@click.command("put")
@click.argument("queue", shell_complete=complete_queue)
@click.argument("body", required=False, metavar="[BODY | -]")
@click.option(
    "--as", "kind", type=click.Choice(["text", "json", "bytes"]), default="text", help="Kind of the body; default text."
)
@click.option("--lines", is_flag=True, help="One message for each line of stdin, put as they come.")
@click.option(
    "-H",
    "--header",
    "headers",
    metavar="NAME=TEXT",
    multiple=True,
    help="A header; NAME:=VALUE for a number, true, false or null. May be repeated.",
)
@click.option("--headers-json", metavar="OBJECT", help='Headers as a JSON object: {"width": 1500}.')
@click.option("--priority", type=Count(0, 9), metavar="N", help="0 to 9, larger goes first; default 4.")
@click.option("--group", metavar="G", help="Messages of one group are handled one after the other.")
@click.option("--ttl", type=Seconds(min=0), metavar="S", help="Seconds until it expires; default: never.")
@click.option("--delay", type=Seconds(min=0), metavar="S", help="Seconds until it can be received; default 0.")
@click.option("--timeout", type=Seconds(min=0), metavar="S", help="Seconds to wait for room; default: for ever.")
@pass_session
def put(
    session: Session,
    queue: str,
    body: str | None,
    kind: str,
    lines: bool,
    headers: tuple[str, ...],
    headers_json: str | None,
    priority: int | None,
    group: str | None,
    ttl: float | None,
    delay: float | None,
    timeout: float | None,
) -> None:
    """Put a message and print its id. BODY is the text itself; "-", or nothing, is stdin.

    It makes a queue that is not there, but not for --priority or --group: shmq declare makes one that has them.

    \b
    Example:
      shmq put orders '{"id": 7}' --as json -H source=web
      shmq put pictures - --as bytes -H kind=jpeg -H width:=1500 < cat.jpg
      seq 1000 | shmq put numbers - --lines
    """
    read = parsed_headers(headers, headers_json)
    said = {"headers": read, "priority": priority, "group": group, "ttl": ttl, "delay": delay}
    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    with usage():
        check_put_options(given)  # before anything is read from stdin
    from_stdin = body is None or body == "-"
    if lines and not from_stdin:
        raise Refused("--lines reads from stdin; give - instead of a body")
    if body is None and sys.stdin.isatty():
        raise Refused("there is no body; give one, or - to type it here")
    with session.open() as broker:
        needs = (" priorities=10" if priority is not None else "") + (" groups=shared" if group is not None else "")
        target = session.queue(broker, queue, _codec(kind), create=not needs, needs=needs)
        with usage():
            put_settings(target, given)
        if lines:
            _put_lines(session, target, kind, given, timeout)
            return
        data = sys.stdin.buffer.read() if from_stdin else os.fsencode(body or "")
        try:
            identity = target.put(_encoded(data, kind), timeout=timeout, **given)
        except BadBody as error:
            raise Refused(f"the body is {error}") from None
        session.result({"id": identity}, str(identity))


def _chunks() -> Iterator[bytes]:
    """Chunks of stdin, as they come."""
    while chunk := os.read(0, _CHUNK):
        yield chunk


def _batches(chunks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """The lines, without their ends, as many at a time as are there: nobody waits for a buffer to fill."""
    rest: list[bytes] = []
    for chunk in chunks:
        if b"\n" not in chunk:
            rest.append(chunk)
            continue
        *whole, last = b"".join([*rest, chunk]).split(b"\n")
        rest = [last] if last else []
        yield whole
    if rest:
        yield [b"".join(rest)]


def _put_lines(session: Session, target: Queue[Any], kind: str, given: dict[str, Any], timeout: float | None) -> None:
    from shmq.cli.progress import progress

    done = 0
    fault: BadBody | None = None
    try:
        with progress(f"put {target.name}") as advance:
            for batch in _batches(_chunks()):
                bodies: list[bytes] = []
                try:
                    for line in batch:
                        bodies.append(_encoded(line, kind))
                except BadBody as error:
                    fault = error
                target.put_many(bodies, timeout=timeout, **given)
                done += len(bodies)
                if fault is not None:
                    raise Refused(f"line {done + 1:,} is {fault}; put before it: {quantity(done, 'line')}")
                advance(len(bodies), sum(map(len, bodies)))
    except (KeyboardInterrupt, ShmqError) as error:
        accepted = getattr(error, "accepted", None)  # None: Ctrl-C, somewhere around put_many()
        done += accepted or 0
        session.result({"put": done})
        say(f"put: {quantity(done, 'line')}{', perhaps some more' if accepted is None else ''}")
        if isinstance(error, ShmqError):
            error.accepted = 0  # of the last call among many, and told in the line above
        raise
    session.result({"put": done})
