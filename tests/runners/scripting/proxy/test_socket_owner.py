"""The kernel tells whose a connection is."""

import os
import socket

import pytest

from runners.scripting.proxy.socket_owner import ask_owner, kernel_answers

pytestmark = pytest.mark.skipif(not kernel_answers(), reason="this kernel answers no such question")


def test_a_connection_is_its_makers() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        port, to = (one.getsockname()[1] for one in (client, server))
        assert ask_owner(port, to) == os.geteuid()
        assert ask_owner(port, to + 1) is None


def test_who_listens_on_a_port_has_not_connected_from_it() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        assert ask_owner(other.getsockname()[1], server.getsockname()[1]) is None
