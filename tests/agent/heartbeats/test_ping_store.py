"""Waiting pings survive a restart, in order, within bounds."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.heartbeats.store import (
    BATCH,
    PingClock,
    PingsInMemory,
    PingsOnDisk,
    PingStore,
    StoredPing,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def ping(number: int) -> StoredPing:
    return StoredPing(
        ping_id=f"id-{number}",
        token=f"token-{number}",
        method="GET",
        source="https://jobs.example",
        user_agent="curl/8",
        received_at=NOON,
        boot_id="boot-1",
        uptime_s=100.0 + number,
    )


def drain(store: PingStore) -> list[str]:
    found = []
    while batch := store.oldest():
        assert len(batch) <= BATCH
        found += [each.ping_id for each in batch]
        store.settle()
    return found


def ids(count: int) -> list[str]:
    return [f"id-{number}" for number in range(count)]


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> PingStore:
    return PingsOnDisk(tmp_path / "pings") if request.param == "disk" else PingsInMemory()


def test_pings_come_out_oldest_first_and_once(store: PingStore) -> None:
    for number in range(600):
        store.put(ping(number))
    assert drain(store) == ids(600)
    assert store.oldest() == []


def test_a_batch_stays_the_same_until_it_is_settled(store: PingStore) -> None:
    store.put(ping(0))
    assert [each.ping_id for each in store.oldest()] == ["id-0"]
    store.put(ping(1))
    assert [each.ping_id for each in store.oldest()] == ["id-0"]
    store.settle()
    assert drain(store) == ["id-1"]


def test_settling_nothing_is_no_error(store: PingStore) -> None:
    store.settle()
    assert store.oldest() == []


def test_memory_is_bounded_and_loses_the_oldest() -> None:
    store = PingsInMemory()
    for number in range(BATCH * 40 + 5):
        store.put(ping(number))
    assert store.dropped == 5
    assert store.oldest()[0].ping_id == "id-5"


def test_pings_survive_a_restart(tmp_path: Path) -> None:
    before = PingsOnDisk(tmp_path)
    for number in range(300):
        before.put(ping(number))
    before.close()
    after = PingsOnDisk(tmp_path)
    after.put(ping(300))
    assert [each.ping_id for each in after.waiting()] == ids(301)
    assert drain(after) == ids(301)
    assert list(tmp_path.iterdir()) == []


def test_pings_survive_a_kill(tmp_path: Path) -> None:
    before = PingsOnDisk(tmp_path / "before")
    before.put(ping(0))
    left = shutil.copytree(tmp_path / "before", tmp_path / "left")
    assert drain(PingsOnDisk(left)) == ["id-0"]
    before.close()


def test_what_gives_way_while_it_is_relayed_takes_no_other_along(tmp_path: Path) -> None:
    store = PingsOnDisk(tmp_path, limit_bytes=40_000)
    for number in range(BATCH):
        store.put(ping(number))
    assert store.oldest()[0].ping_id == "id-0"
    for number in range(BATCH, 2 * BATCH):
        store.put(ping(number))
    assert store.dropped == BATCH
    store.settle()
    assert drain(store)[0] == f"id-{BATCH}"


def test_a_deleted_folder_costs_no_later_ping(tmp_path: Path) -> None:
    store = PingsOnDisk(tmp_path / "pings")
    store.put(ping(0))
    shutil.rmtree(tmp_path / "pings")
    store.put(ping(1))
    store.put(ping(2))
    assert drain(store) == ["id-1", "id-2"]


def test_a_folder_is_one_agents_alone(tmp_path: Path) -> None:
    store = PingsOnDisk(tmp_path)
    store.put(ping(0))
    with pytest.raises(OSError, match="another agent"):
        PingsOnDisk(tmp_path)
    assert drain(store) == ["id-0"]
    store.close()
    PingsOnDisk(tmp_path).close()


def test_a_line_torn_by_a_crash_costs_no_other_ping(tmp_path: Path) -> None:
    before = PingsOnDisk(tmp_path)
    before.put(ping(0))
    before.close()
    (file,) = [file for file in tmp_path.iterdir() if file.stat().st_size]
    file.write_bytes(b"\xff\xfe garbage\n" + file.read_bytes() + b'{"pingId": "torn')
    assert drain(PingsOnDisk(tmp_path)) == ["id-0"]


def test_a_file_that_somebody_removed_stops_nothing(tmp_path: Path) -> None:
    store = PingsOnDisk(tmp_path)
    store.put(ping(0))
    for file in tmp_path.iterdir():
        file.unlink()
    assert drain(store) == []
    store.put(ping(1))
    assert drain(store) == ["id-1"]


def test_the_disk_is_bounded_and_loses_the_oldest_batch(tmp_path: Path) -> None:
    store = PingsOnDisk(tmp_path, limit_bytes=150_000)
    for number in range(BATCH * 4):
        store.put(ping(number))
    kept = drain(store)
    assert store.dropped == BATCH * 4 - len(kept) > 0
    assert kept == ids(BATCH * 4)[store.dropped :]


def test_a_directory_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the file system
        PingsOnDisk(blocked / "pings")


class Times:
    """A machine whose clocks a test sets."""

    def __init__(self) -> None:
        self.uptime_s = 160.0
        self.now = NOON + timedelta(seconds=90)

    def clock(self, boot_id: str) -> PingClock:
        return PingClock(uptime_s=lambda: self.uptime_s, now=lambda: self.now, boot_id=boot_id)


def test_age_goes_by_the_uptime_even_when_the_calendar_jumps() -> None:
    assert Times().clock("boot-1").age_s(ping(0)) == 60


def test_after_a_reboot_age_goes_by_the_calendar() -> None:
    assert Times().clock("boot-2").age_s(ping(0)) == 90


def test_an_age_is_never_negative() -> None:
    times = Times()
    times.now, times.uptime_s = NOON - timedelta(hours=1), 3
    assert times.clock("boot-1").age_s(ping(0)) == 0
    assert times.clock("boot-2").age_s(ping(0)) == 0


def test_a_machine_without_a_boot_id_goes_by_the_calendar() -> None:
    unnamed = Times().clock("")
    assert unnamed.age_s(ping(0)) == 90


def test_this_machine_has_a_boot_id_that_holds() -> None:
    assert PingClock().boot_id == PingClock().boot_id != ""
