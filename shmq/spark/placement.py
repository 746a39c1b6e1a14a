"""Makes readers and writers for queues of this host, or of other hosts through their gateways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shmq.spark.batch_source import BatchSource
from shmq.spark.hosts import HostsBatchSource, HostsStreamSource
from shmq.spark.hosts_sink import HostsBatchSink, HostsStreamSink
from shmq.spark.options import SinkOptions, SourceOptions, addresses_of, remote_texts
from shmq.spark.sink import BatchSink, StreamSink
from shmq.spark.stream_source import StreamSource

__all__ = ["batch_sink", "batch_source", "stream_sink", "stream_source"]


def batch_source(options: Mapping[str, str], columns: tuple[str, ...]) -> BatchSource | HostsBatchSource:
    """Makes the reader of a batch. Raises ValueError that names the option, as the other functions here do."""
    parsed, addresses = SourceOptions.parse(options), addresses_of(options)
    if not addresses:
        return BatchSource(parsed, columns)
    from shmq.spark.gateway.remote_source import RemoteBatchSource

    texts = remote_texts(options, columns=",".join(columns))
    texts.pop("subscription", None)  # a batch looks at the queue itself
    return HostsBatchSource({address.uri: RemoteBatchSource(address, texts) for address in addresses})


def stream_source(options: Mapping[str, str], columns: tuple[str, ...]) -> StreamSource | HostsStreamSource:
    parsed, addresses = SourceOptions.parse(options), addresses_of(options)
    if not addresses:
        return StreamSource(parsed, columns)
    from shmq.spark.gateway.remote_source import RemoteStreamSource

    StreamSource(replace(parsed, path="/"), columns)  # which says what is missing
    poll = f"{parsed.poll * 1000 / len(addresses):g}"  # they are asked one after another
    texts = remote_texts(options, columns=",".join(columns), pollms=poll)
    return HostsStreamSource({address.uri: RemoteStreamSource(address, texts) for address in addresses})


def batch_sink(options: Mapping[str, str], overwrite: bool) -> BatchSink | HostsBatchSink:
    parsed, addresses = SinkOptions.parse(options), addresses_of(options)
    local = BatchSink(parsed, overwrite)
    return HostsBatchSink(addresses, parsed, remote_texts(options), overwrite) if addresses else local


def stream_sink(options: Mapping[str, str]) -> StreamSink | HostsStreamSink:
    parsed, addresses = SinkOptions.parse(options), addresses_of(options)
    given = {"idempotencyKey": parsed.idempotency_key is not None, "truncate": parsed.truncate}
    for name in (name for name, is_given in given.items() if is_given):
        raise ValueError(f"the option {name} is of a batch write; a stream has each batch once by its checkpoint")
    return HostsStreamSink(addresses, parsed, remote_texts(options)) if addresses else StreamSink(parsed)
