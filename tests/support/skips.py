"""Which skips `tools/test --strict` lets pass. Any other is a failure: a test that did not run has shown nothing."""

import re

# Things that no installation and no right can give on this machine, and why the test is worth keeping all the same.
EXCUSED = {
    r"pyright needs node, which is not on this machine": "mypy sees the same programs in any case",
    r"no pyspark: tools/test --spark": "half a gigabyte, and a Java besides: who wants it says so",
    r"no \w+: tools/test --spark installs it": "frames of other libraries, which docs/arrow.md shows",
    r"no \w+: pip has none for this Python": "deltalake, pyiceberg, duckdb or polars, which pages show",
    r"no network namespaces here: .*": "a container may be without the right to make them",
    r"no small file system here: .*": "a container may be without the right to mount one",
    r"numpy 2 has it": "numpy 1.26 is supported, too, and has no strings of variable length to refuse",
    r"[\d,]+ descriptors are needed, [\d,]+ allowed": "the hard limit of a container is set from outside",
    r"a broker has \d+ MB here: half of /dev/shm": "the queue would not fit: /dev/shm is as the machine has it",
}


def is_excused(reason: str) -> bool:
    return any(re.fullmatch(pattern, reason.removeprefix("Skipped: ")) for pattern in EXCUSED)
