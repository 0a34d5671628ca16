"""Whose fault a failed connection is."""

import errno

import pytest

from contract.requests import IpFamily
from contract.result import CheckFailed, FailureKind
from runners.net.sockets import TARGET_FAULTS, connect, map_connect_errors
from tests.builders.patience import descriptors
from tests.servers.island import PROHIBITED, island
from tests.servers.tcp import closes, refusing_port, tcp_server


@pytest.mark.parametrize("code", TARGET_FAULTS, ids=errno.errorcode.get)
def test_what_the_target_did_is_its_fault(code: int) -> None:
    with pytest.raises(CheckFailed) as caught, map_connect_errors("::1", 80, syscall="connect"):
        raise OSError(code, "as the system says it")
    assert caught.value.failure.kind is FailureKind.CONNECT
    assert caught.value.failure.message.startswith("[::1]:80 ")
    assert caught.value.failure.detail["code"] == errno.errorcode[code]


@pytest.mark.parametrize(
    "code",
    [errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.EAFNOSUPPORT],
    ids=errno.errorcode.get,
)
def test_what_this_host_lacks_is_our_fault(code: int) -> None:
    with (
        pytest.raises(OSError, check=lambda problem: problem.errno == code),
        map_connect_errors("127.0.0.1", 80, syscall="connect"),
    ):
        raise OSError(code, "as the system says it")


def test_a_timeout_of_ours_passes() -> None:
    with pytest.raises(TimeoutError), map_connect_errors("127.0.0.1", 80, syscall="read"):
        raise TimeoutError


async def test_a_connected_socket_does_not_block() -> None:
    async with tcp_server(closes) as port:
        with await connect("127.0.0.1", port, IpFamily.IPV4) as sock:
            assert not sock.getblocking()
            assert sock.getpeername() == ("127.0.0.1", port)


async def test_a_refusal_leaves_no_socket_open() -> None:
    with refusing_port() as port:
        before = len(descriptors())
        for _ in range(50):
            with pytest.raises(CheckFailed):
                await connect("127.0.0.1", port, IpFamily.IPV4)
        assert len(descriptors()) < before + 50, "what else the process opens meanwhile is less"


async def test_a_forbidden_way_is_no_fault_of_ours() -> None:
    with island():
        with pytest.raises(CheckFailed, match="a firewall or a route forbids it") as caught:
            await connect(PROHIBITED, 80, IpFamily.IPV4)
        assert caught.value.failure.detail["code"] == "EACCES"
