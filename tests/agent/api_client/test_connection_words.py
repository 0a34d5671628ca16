"""A connection that did not come about is told in words of the system."""

import errno
import socket
import ssl

import pytest

from agent.api_client.client import describe_connection_error


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed"), "connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "its name cannot be looked up"),
        (ssl.SSLError(1, "wrong version number"), "wrong version number"),
        (OSError("Multiple exceptions"), "Multiple exceptions"),
        (ValueError(), "ValueError"),
    ],
)
def test_the_system_says_why(problem: BaseException, words: str) -> None:
    assert words in describe_connection_error(problem)
    assert "ssl:default" not in describe_connection_error(problem)
