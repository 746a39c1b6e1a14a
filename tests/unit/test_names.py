"""Names of queues, paths and URLs of brokers: what is allowed, and that each refusal names its fault."""

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmq.names import MAX_NAME_BYTES, broker_url, check_queue_name, parse_broker_path


@pytest.mark.parametrize("name", ["a", "orders.dead", "größe", "a b", "日" * 66, "x" * 200, "..", "shmq-x", "\u2028"])
def test_a_good_name_becomes_its_utf8_bytes(name: str) -> None:
    assert check_queue_name(name) == name.encode()


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "is empty"),
        ("a/b", 'has "/"'),
        ("a\nb", r"control character U\+000A"),
        ("\0", r"control character U\+0000"),
        ("a\x7f", r"control character U\+007F"),
        ("a\x85b", r"control character U\+0085"),
        ("a\ud800b", r"lone surrogate U\+D800"),
        ("x" * 201, "too long"),
        ("日" * 67, "201 bytes of UTF-8, at most 200"),
    ],
)
def test_a_bad_name_is_refused_with_its_fault(name: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault) as caught:
        check_queue_name(name)
    assert str(caught.value).isprintable()


def test_a_very_long_name_is_abbreviated() -> None:
    with pytest.raises(ValueError, match=r"1,000,000 characters") as caught:
        check_queue_name("q" * 1_000_000)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("name", [b"orders", None, 7])
def test_a_name_that_is_no_text_is_a_type_error(name: object) -> None:
    with pytest.raises(TypeError, match="is a str, not"):
        check_queue_name(name)  # type: ignore[arg-type]


def test_the_noun_stands_in_the_text() -> None:
    with pytest.raises(ValueError, match=r"^the exchange name 'a/b' has"):
        check_queue_name("a/b", noun="exchange")


@given(st.text())
def test_any_text_is_a_name_or_a_value_error(name: str) -> None:
    allowed = (
        1 <= len(name.encode()) <= MAX_NAME_BYTES
        and "/" not in name
        and not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name)
    )
    if allowed:
        assert check_queue_name(name).decode() == name
    else:
        with pytest.raises(ValueError, match="name"):
            check_queue_name(name)


def test_a_relative_path_is_taken_from_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_broker_path("hello.shmq") == str(tmp_path / "hello.shmq")
    assert parse_broker_path(".") == str(tmp_path)
    assert parse_broker_path(Path("a") / "b") == str(tmp_path / "a" / "b")
    assert parse_broker_path("./shmq:x") == str(tmp_path / "shmq:x")


@pytest.mark.parametrize(
    ("path", "directory"),
    [
        ("/var/lib/app", "/var/lib/app"),
        ("/var//lib/./app/", "/var/lib/app"),
        ("//var/lib", "/var/lib"),
        (PurePosixPath("/a/b"), "/a/b"),
        ("shmq:///var/lib/app", "/var/lib/app"),
        ("SHMQ:///var/lib/app", "/var/lib/app"),
        ("shmq:////var/lib/app/", "/var/lib/app"),
        ("shmq:///my%20shop/a%2Fb", "/my shop/a/b"),
        ("shmq:///gr%C3%B6%C3%9Fe", "/größe"),
        ("shmq:///größe", "/größe"),
        ("shmq:///a%25b%3Fc%23d", "/a%b?c#d"),
        ("shmq:///a%FF", "/a\udcff"),
    ],
)
def test_a_path_or_url_becomes_an_absolute_directory(path: str | PurePosixPath, directory: str) -> None:
    assert parse_broker_path(path) == directory


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("", "is empty"),
        ("a\0b", "null character"),
        ("shmq:///a%00b", "null character"),
        ("shmq://host/dir", "has the host 'host'"),
        ("shmq://localhost/dir", "has the host"),
        ("shmq://", "has no directory"),
        ("shmq:dir", "is relative"),
        ("shmq:/dir", "is relative"),
        ("shmq://?x=1", "has the host|has no directory"),
        ("shmq:///dir?memory=1", "has a query"),
        ("shmq:///dir#x", "has a fragment"),
        ("shmq:///a%2", "malformed percent escape"),
        ("shmq:///a%zz", "malformed percent escape"),
        ("redis://localhost/0", "scheme 'redis://'"),
        ("/a\ud800", "cannot be a file's name"),
        ("shmq:///a\ud800", "cannot be a file's name"),
        (Path("shmq:///var/lib"), "give the URL as str"),
    ],
)
def test_a_bad_path_or_url_is_refused_with_its_fault(path: str | Path, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_broker_path(path)


@pytest.mark.parametrize("path", [None, 7, b"/var"])
def test_a_path_that_is_no_text_is_a_type_error(path: object) -> None:
    with pytest.raises(TypeError, match="path"):
        parse_broker_path(path)  # type: ignore[arg-type]


@given(st.binary(max_size=40))
def test_url_and_path_lead_back_to_each_other(tail: bytes) -> None:
    path = parse_broker_path("/" + os.fsdecode(tail.replace(b"\0", b"0")))
    url = broker_url(path)
    assert url.isascii()
    assert url.startswith("shmq:///")
    assert parse_broker_path(url) == path


def test_a_relative_directory_has_no_url() -> None:
    with pytest.raises(ValueError, match="is relative"):
        broker_url("a/b")
