"""tools/judge: what it says, and its exit codes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import shmq
from tests.repo.tree import ROOT
from tests.support.segment_image import image_of, segment_file, write_file


def judge(*arguments: str | Path) -> tuple[int, str, str]:
    """The module behind the command, so that no environment is built here."""
    result = subprocess.run(
        [sys.executable, "-m", "checker", *map(str, arguments)],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        timeout=60,
    )
    return result.returncode, result.stdout, result.stderr


def test_a_sound_segment_by_name_and_by_file(
    broker_dir: Path, broker: shmq.Broker, queue: shmq.Queue[Any], tmp_path: Path
) -> None:
    queue.put(b"hello")
    name = segment_file(broker_dir).name
    assert judge(name)[:2] == (0, "nothing found\n")
    assert judge(name, "--quiet")[:2] == (0, "nothing found\n")
    copy = tmp_path / "copy"
    write_file(copy, image_of(broker_dir))
    assert judge(copy, "--quiet", "--json")[:2] == (0, "[]\n")


def test_what_is_found_is_told_and_ends_with_1(broker_dir: Path, broker: shmq.Broker, tmp_path: Path) -> None:
    image = image_of(broker_dir)
    data = image.copied()
    data[1280] = 7
    copy = tmp_path / "copy"
    write_file(copy, image, data)
    code, text, _ = judge(copy)
    assert (code, text) == (1, "header.state: header: state 7\n1 violations\n")
    code, text, _ = judge(copy, "--json")
    assert (code, json.loads(text)) == (1, [{"rule": "header.state", "where": "header", "text": "state 7"}])


def test_the_messages_of_a_queue(broker_dir: Path, broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    queue.put_many([b"one", b"two"])
    code, text, _ = judge(segment_file(broker_dir), "--entries", "jobs", "--json")
    assert code == 0
    assert [bytes.fromhex(entry["body"]) for entry in json.loads(text)] == [b"one", b"two"]
    code, text, _ = judge(segment_file(broker_dir), "--entries", "jobs")
    assert code == 0
    assert "b'two'" in text
    assert judge(segment_file(broker_dir), "--entries", "none")[0] == 2


def test_what_is_no_segment_ends_with_2(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_bytes(b"x" * 100)
    code, _, error = judge(short)
    assert code == 2
    assert "is no segment" in error
    assert judge(tmp_path / "missing")[0] == 2
    assert judge(short, "--dead", "x")[0] == 2


def test_how_long_it_takes_is_told_apart_from_what_is_found(broker_dir: Path, broker: shmq.Broker) -> None:
    code, text, error = judge(segment_file(broker_dir), "--repeat", "5")
    assert (code, text) == (0, "nothing found\n")
    assert "ms, median of 5" in error


def test_help_says_what_it_does() -> None:
    code, text, _ = judge("--help")
    assert code == 0
    assert "--quiet" in text
    assert "Exit code 1" in text
