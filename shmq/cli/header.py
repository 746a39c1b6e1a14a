"""Headers on the command line: -H NAME=TEXT, -H NAME:=JSON, --headers-json {...}."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from shmq.cli.session import Refused, usage
from shmq.errors import DecodeError
from shmq.headers import Header, encode_headers

__all__ = ["parsed_headers"]


def parsed_headers(given: tuple[str, ...], together: str | None) -> dict[str, Header] | None:
    """The headers of a message, checked; None without any.

    Arguments:
        given: of -H, one each.
        together: of --headers-json, a JSON object.

    Raises Refused, also for a header that is given twice.
    """
    headers: dict[str, Header] = {}
    if together is not None:
        found = _json(together, f"--headers-json {together!r}")
        if not isinstance(found, dict):
            raise Refused(f'--headers-json {together!r}: an object is expected, such as {{"width": 1500}}')
        _add(headers, ((name, found[name]) for name, _ in json.loads(together, object_pairs_hook=list)))
    _add(headers, map(_header, given))
    try:
        with usage():
            encode_headers(headers or None)  # before anything is read from stdin
    except Refused as error:
        if isinstance(error.__cause__, TypeError):
            raise Refused(f"{_not_scalar(headers)}: a header is text, a number, true, false or null") from None
        raise
    return headers or None


def _add(headers: dict[str, Header], more: Iterable[tuple[str, Header]]) -> None:
    for name, value in more:
        if name in headers:
            raise Refused(f"the header {name!r} is given twice; a message has one value of a name")
        headers[name] = value


def _not_scalar(headers: dict[str, Header]) -> str:
    return next(
        f"the header {name!r} is {value!r}" for name, value in headers.items() if isinstance(value, list | dict)
    )


def _header(given: str) -> tuple[str, Header]:
    name, sign, text = given.partition("=")
    if not sign:
        raise Refused(f"-H {given!r}: write NAME=TEXT, or NAME:=VALUE for a number, true, false or null")
    if name.endswith(":"):
        return name[:-1], _json(text, f"-H {given!r}")
    return name, text


def _json(text: str, place: str) -> Any:
    from shmq.codec_json import decode_finite_json

    try:
        return decode_finite_json(memoryview(text.encode("utf-8", "surrogateescape")))
    except DecodeError as error:
        raise Refused(f"{place}: not JSON: {error.__cause__ or error}; NAME=TEXT gives text") from None
