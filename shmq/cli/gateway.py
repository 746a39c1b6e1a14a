"""gateway: the queues of this host for Spark on others."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.interruption import loading
from shmq.cli.session import Refused, Session, pass_session, say, usage

if TYPE_CHECKING:
    from shmq.spark.gateway.server import Gateway

__all__ = ["gateway"]

_LOOPBACK = ("127.", "localhost:", "[::1]:")


@click.command("gateway")
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:8815", show_default=True, help="Port 0 is any free one."
)
@click.option("--token-file", metavar="FILE", help="Its first line is the token that callers must know.")
@click.option("--tls-cert", metavar="FILE", help="The certificate of this host, in PEM.")
@click.option("--tls-key", metavar="FILE", help="Its private key, in PEM.")
@click.option("--insecure", is_flag=True, help="Let other hosts in without a token, or without TLS.")
@pass_session
def gateway(
    session: Session,
    listen: str,
    token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    insecure: bool,
) -> None:
    """Serve the broker's queues to Spark on other hosts, until Ctrl-C or SIGTERM.

    Spark reads and writes them by .option("uri", "grpc+tls://HOST:PORT"); several hosts with commas between them.
    A caller with the token may read, take and put messages of all queues. The gateway lets other hosts in only with a
    token and TLS, unless --insecure is given. It needs pyarrow (pip install 'shmq[gateway]').

    \b
    Example:
      python3 -c 'import secrets; print(secrets.token_urlsafe())' > token; chmod 600 token
      shmq -d /var/lib/shop gateway --listen 10.0.0.7:8815 --token-file token --tls-cert cert.pem --tls-key key.pem
    """
    if (tls_cert is None) is not (tls_key is None):
        raise Refused("--tls-cert and --tls-key go together")
    if not listen.startswith(_LOOPBACK) and not insecure and (token_file is None or tls_cert is None):
        raise Refused(
            f"{listen} can be reached from other hosts, which could read and take all messages; give --token-file, "
            "--tls-cert and --tls-key, or give --insecure"
        )
    with session.open() as broker:
        path = broker.path or ""
        with usage():
            server = _server(path, listen, token_file, tls_cert, tls_key)
        scheme = "grpc+tls" if tls_cert is not None else "grpc"
        uri = f"{scheme}://{listen.rpartition(':')[0]}:{server.port}"
        session.result({"uri": uri}, uri)
        say(f"serving {path}; Ctrl-C ends it")
        _serve(server)


def _server(path: str, listen: str, token_file: str | None, tls_cert: str | None, tls_key: str | None) -> Gateway:
    with loading():
        try:
            from shmq.spark.gateway.server import Gateway
            from shmq.spark.gateway.token import read_token
        except ModuleNotFoundError as error:
            raise Refused(
                f"a gateway needs {error.name}, which is not installed: pip install 'shmq[gateway]'"
            ) from None
    token = None if token_file is None else read_token(token_file)
    certificate = None if tls_cert is None else Path(tls_cert).read_bytes()
    key = None if tls_key is None else Path(tls_key).read_bytes()
    location = f"{'grpc+tls' if certificate is not None else 'grpc'}://{listen}"
    try:
        return Gateway(path, location, token, certificate, key)
    except OSError as error:
        raise Refused(f"{error}; name another --listen") from None


def _serve(server: Any) -> None:
    """Until a signal comes. The server's own threads answer; this one waits where a signal finds it."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    server.shutdown()
    sys.stderr.flush()
