"""Who is at the other end of a connection on this machine."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runners.scripting.proxy import socket_owner
from runners.scripting.proxy.socket_owner import ConnectionTable, admit_owner_of

NOBODY = 65534
DIAL = (
    "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.recv(1)"
)
TABLE = Path("/proc/net/tcp")


@contextmanager
def dialled_by_nobody() -> Iterator[tuple[int, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        to = server.getsockname()[1]
        with subprocess.Popen([sys.executable, "-Ic", DIAL, str(to)], user=NOBODY) as stranger:
            connection, address = server.accept()
            with connection:
                yield address[1], to
            stranger.wait()


@pytest.fixture(params=["asked", "looked-up"])
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel answers questions, and where it does not."""
    if request.param == "looked-up":
        monkeypatch.setattr(socket_owner, "kernel_answers", lambda: False)


async def test_a_connection_in_the_table_is_its_makers() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        port, to = (one.getsockname()[1] for one in (client, server))
        assert await ConnectionTable(TABLE).owner(port, to) == os.geteuid()
        assert await ConnectionTable(TABLE).owner(port, to + 1) is None


@pytest.mark.usefixtures("_each_way")
async def test_a_port_that_nobody_has_is_nobodys(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert not await admit_owner_of(tmp_path)(port, port)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to work as somebody else")
@pytest.mark.usefixtures("_each_way")
async def test_who_comes_as_another_user_is_not_the_folders_owner(tmp_path: Path) -> None:
    with dialled_by_nobody() as ends:
        assert not await admit_owner_of(tmp_path)(*ends)
        os.chown(tmp_path, NOBODY, NOBODY)
        assert await admit_owner_of(tmp_path)(*ends)


async def test_one_look_at_the_table_serves_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Path] = []
    really_read = Path.read_text

    def read(path: Path) -> str:
        looks.append(path)
        return really_read(path)

    table = ConnectionTable(TABLE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        to = server.getsockname()[1]
        clients = [socket.create_connection(("127.0.0.1", to)) for _ in range(50)]
        monkeypatch.setattr(Path, "read_text", read)
        ports = [client.getsockname()[1] for client in clients]
        owners = await asyncio.gather(*(table.owner(port, to) for port in ports))
        for client in clients:
            client.close()
    assert owners == [os.geteuid()] * 50
    assert len(looks) < 10
