"""The addresses of gateways, and the files with token and certificates for calls to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Address", "parse_uris"]

_URI: Final = re.compile(r"grpc(\+tls)?://([^/\s:@\[\]]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")


@dataclass(frozen=True)
class Address:
    """One gateway.

    Arguments:
        uri: grpc://HOST:PORT, or grpc+tls://HOST:PORT.
        token_file: whose first line is the token; None: the gateway wants none.
        ca_file: certificates in PEM that are trusted; None: those of the system.
    """

    uri: str
    token_file: str | None = None
    ca_file: str | None = None


def parse_uris(text: str) -> tuple[str, ...]:
    """Parses URIs of gateways, with commas between them. Raises ValueError that names a wrong or repeated one."""
    uris = tuple(part.strip().rstrip("/") for part in text.split(","))
    for uri in uris:
        if not _URI.fullmatch(uri):
            raise ValueError(
                f"option uri={text!r}: {uri!r} is not a gateway; write grpc+tls://HOST:PORT, "
                "or grpc://HOST:PORT for one without TLS"
            )
    if len(set(uris)) != len(uris):
        raise ValueError(f"option uri={text!r}: a gateway is named twice")
    return uris
