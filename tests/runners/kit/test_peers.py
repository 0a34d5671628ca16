"""Who is at the other end of a connection on this machine."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runners.kit.peers import came_from, owner_of_connection

NOBODY = 65534
DIAL = (
    "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.recv(1)"
)


def test_a_connection_is_its_makers() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        port, to = (one.getsockname()[1] for one in (client, server))
        assert owner_of_connection(port, to) == os.getuid()
        assert owner_of_connection(port, to + 1) is None


def test_a_port_that_nobody_has_is_nobodys(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert owner_of_connection(port, port) is None
    assert not came_from(tmp_path)(port, port)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to work as somebody else")
def test_who_comes_as_another_user_is_not_the_folders_owner(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        to = server.getsockname()[1]
        with subprocess.Popen([sys.executable, "-Ic", DIAL, str(to)], user=NOBODY) as stranger:
            connection, address = server.accept()
            with connection:
                assert owner_of_connection(address[1], to) == NOBODY
                assert not came_from(tmp_path)(address[1], to)
                os.chown(tmp_path, NOBODY, NOBODY)
                assert came_from(tmp_path)(address[1], to)
            stranger.wait()
