"""A broker for a group: the ways in which another user gets it, and what he is told where he does not."""

import os
import subprocess
from pathlib import Path

import pytest

import shmq
from tests.engine.conftest import MEMORY
from tests.engine.lifecycle.test_less_trusted import place, record_of
from tests.support.users import GROUP, OTHER, as_user, needs_root

pytestmark = needs_root
__all__ = ["place"]  # a fixture
SHM = Path("/dev/shm")
OWNER = 65533


def put(path: Path, mode: int | None = None) -> None:
    with shmq.open(path, memory=MEMORY, mode=mode) as broker:
        broker.queue("jobs").put("for the group")


def take(path: Path) -> object:
    with shmq.open(path, create=False) as broker:
        return broker.queue("jobs", create=False).get(timeout=0)


@pytest.fixture
def home(place: Path) -> Path:
    """A directory of the owner's, who is no root."""
    path = place / "home"
    path.mkdir()
    os.chown(path, OWNER, OWNER)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_below_a_directory_with_setgid_a_broker_is_its_groups(home: Path, umask: int) -> None:
    """The owner does this once: chgrp GROUP home; chmod g+s home."""
    os.chown(home, -1, GROUP)
    home.chmod(0o2755)

    def owner() -> None:
        os.umask(umask)
        put(home / "jobs", 0o770)

    as_user(owner, OWNER, GROUP, uid=OWNER)
    assert as_user(lambda: take(home / "jobs"), OTHER, GROUP) == "for the group"
    assert (SHM / record_of(home / "jobs")["name"]).stat().st_gid == GROUP


def test_after_newgrp_a_broker_is_that_groups(home: Path) -> None:
    as_user(lambda: put(home / "jobs", 0o770), GROUP, OWNER, uid=OWNER)
    assert as_user(lambda: take(home / "jobs"), OTHER, GROUP) == "for the group"


def test_a_directory_that_was_prepared_with_its_group_is_shared_without_a_word(home: Path) -> None:
    path = home / "jobs"
    path.mkdir()
    os.chown(path, OWNER, GROUP)
    path.chmod(0o2770)
    as_user(lambda: put(path), OWNER, GROUP, uid=OWNER)
    assert as_user(lambda: take(path), OTHER, GROUP) == "for the group"


def test_a_member_of_the_group_makes_the_broker_anew_after_a_loss(home: Path) -> None:
    as_user(lambda: put(home / "jobs", 0o770), GROUP, OWNER, uid=OWNER)
    (SHM / record_of(home / "jobs")["name"]).unlink()
    as_user(lambda: put(home / "jobs"), OTHER, GROUP)
    assert as_user(lambda: take(home / "jobs"), OWNER, GROUP, uid=OWNER) == "for the group"


def test_who_is_not_in_its_group_is_told_what_its_owner_can_do(home: Path) -> None:
    as_user(lambda: put(home / "jobs", 0o770), OWNER, uid=OWNER)
    with pytest.raises(PermissionError) as caught:
        as_user(lambda: take(home / "jobs"), OTHER, GROUP)
    text = str(caught.value)
    assert f"gid {OWNER}" in text
    for remedy in ("newgrp GROUP", "chmod g+s", "shmq init --mode 0770"):
        assert remedy in text


def test_who_may_not_make_a_broker_there_is_told_whose_place_it_is(home: Path) -> None:
    with pytest.raises(PermissionError) as caught:
        as_user(lambda: put(home / "jobs"), OTHER)
    text = str(caught.value)
    assert f"none can be made: {home} belongs to uid {OWNER}, gid {OWNER}, with mode 0o755, and we are " in text
    assert "name a directory where you can make files" in text
    assert list(home.iterdir()) == []


def test_a_group_that_is_changed_afterwards_has_to_be_changed_for_the_memory_too(home: Path) -> None:
    path = home / "jobs"
    as_user(lambda: put(path, 0o770), OWNER, uid=OWNER)
    subprocess.run(["chgrp", "-R", str(GROUP), path], check=True)
    segment = SHM / record_of(path)["name"]
    with pytest.raises(PermissionError, match=rf"chgrp GROUP /dev/shm/{segment.name}"):
        as_user(lambda: take(path), OTHER, GROUP)
    with pytest.raises(PermissionError, match=rf"chgrp {GROUP} /dev/shm/{segment.name}"):
        as_user(lambda: take(path), OWNER, GROUP, uid=OWNER)
    os.chown(segment, -1, GROUP)
    assert as_user(lambda: take(path), OTHER, GROUP) == "for the group"


def test_an_owner_who_is_not_in_the_group_of_the_directory_is_told_so(home: Path) -> None:
    path = home / "jobs"
    path.mkdir()
    os.chown(path, OWNER, GROUP)
    path.chmod(0o770)
    with pytest.raises(PermissionError, match=rf"group {GROUP}, and this process is not a member"):
        as_user(lambda: put(path), OWNER, uid=OWNER)
    assert [each.name for each in path.iterdir()] == ["lock"]


def test_only_who_made_the_memory_deletes_a_groups_broker(home: Path) -> None:
    path = home / "jobs"
    as_user(lambda: put(path, 0o770), GROUP, OWNER, uid=OWNER)

    def delete() -> None:
        with shmq.open(path, create=False) as broker:
            broker.delete(force=True)

    with pytest.raises(PermissionError, match=r"another user's.*let its owner delete"):
        as_user(delete, OTHER, GROUP)
    assert as_user(lambda: take(path), OTHER, GROUP) == "for the group"
    as_user(delete, OWNER, GROUP, uid=OWNER)
    assert not path.exists()
