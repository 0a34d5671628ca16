"""Services whose PostgreSQL runs out of disk, or hands over to its standby; and three of them."""

import asyncio
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.nursery import Nursery
from tests.faults.replicas import set_replicas
from tests.servers.postgresql import LocalPostgres, postgres_server, require_programs

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]

_DISK_BYTES = 160 * 1024 * 1024
_CREATE = "CREATE DATABASE picket TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"


@contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of its own, with little room; where none can be made, the test is skipped."""
    with TemporaryDirectory(prefix="picket-disk-") as folder:
        options = f"size={_DISK_BYTES},mode=0755"
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            pytest.skip(f"only root may make a file system: {made.stderr.strip()}")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def fill(file: Path) -> None:
    """Take all room that is left."""
    with file.open("wb") as ballast, suppress(OSError):
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while True:
                    os.write(ballast.fileno(), bytes(size))


async def test_runs_wait_while_the_disk_of_the_database_is_full(
    tmp_path: Path, nurseries: Mapping[str, Nursery]
) -> None:
    with (
        small_disk() as disk,
        TemporaryDirectory(prefix="picket-wal-") as wal,
        LocalPostgres(require_programs(), disk, wal=Path(wal)).running() as server,
        server.database() as url,
    ):
        async with set_replicas(tmp_path, url, nurseries) as replicas:
            checks = [await replicas.check(at, frequency_s=10) for at in ("one", "two")]
            await replicas.until(lambda: all(map(replicas.due_times().get, checks)))
            services = replicas.services.values()
            fill(disk / "ballast")
            async with asyncio.timeout(120):
                while not all(one.events("database.disk_full") for one in services):
                    for at in replicas.services:
                        with suppress(AssertionError):  # 507
                            await replicas.trigger(at, checks * 20)
            (disk / "ballast").unlink()
            await replicas.until(lambda: all(len(t) >= 4 for t in replicas.due_times().values()))
            await replicas.assert_balanced("one", checks)
            for one in services:
                assert len(one.events("database.disk_full")) == 1
            for agent in replicas.agents:
                assert await agent.metric("results_dropped_total") == 0


async def test_runs_go_on_at_a_standby_that_became_the_primary(
    tmp_path: Path, nurseries: Mapping[str, Nursery]
) -> None:
    programs = require_programs()
    with TemporaryDirectory(prefix="picket-a-") as a, TemporaryDirectory(prefix="picket-b-") as b:
        primary = LocalPostgres(programs, Path(a))
        with primary.running() as first:
            first.run(_CREATE)
            with LocalPostgres(programs, Path(b), copy_of=primary).running() as second:
                # What a service acknowledged is on both.
                first.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
                first.run("SELECT pg_reload_conf()")
                both = f"postgresql://picket@/picket?host={a},{b}&target_session_attrs=read-write"
                async with set_replicas(tmp_path, both, nurseries) as replicas:
                    checks = [await replicas.check(at, frequency_s=10) for at in ("one", "two")]
                    await replicas.trigger("one", checks)
                    await replicas.until(lambda: all(map(replicas.due_times().get, checks)))
                    await asyncio.to_thread(primary.stop)
                    await asyncio.to_thread(second.run, "SELECT pg_promote()")
                    await replicas.trigger("two", checks)
                    await replicas.until(
                        lambda: all(len(t) >= 4 for t in replicas.due_times().values())
                    )
                    await replicas.assert_balanced("one", checks)
                    assert all(one.is_alive for one in replicas.services.values())


async def test_every_run_of_three_services_ends_once_though_each_of_them_dies(
    tmp_path: Path, nurseries: Mapping[str, Nursery]
) -> None:
    names = ("one", "two", "three")
    with postgres_server() as server, server.database() as url:
        async with set_replicas(tmp_path, url, nurseries, names=names) as replicas:
            checks = [await replicas.check(at, frequency_s=10) for at in names for _ in range(2)]
            for at, other in zip(names, (*names[1:], names[0]), strict=True):
                await replicas.trigger(at, checks)
                await replicas.services[at].kill()
                await replicas.trigger(other, checks)
                await asyncio.to_thread(replicas.cut_all_off)
                await replicas.start_service(at)
            await replicas.until(lambda: all(len(t) >= 3 for t in replicas.due_times().values()))
            await replicas.assert_balanced("three", checks)
