"""What this machine lets the user do who runs the tests."""

from contract.requests import IpFamily
from runners.net.icmp.socket import IcmpPrivilege, PingerUnavailableError, open_icmp_socket


def can_ping() -> bool:
    """Whether pings may be sent; an ordinary user often may not."""
    try:
        open_icmp_socket(IpFamily.IPV4, tuple(IcmpPrivilege)).close()
    except PingerUnavailableError:
        return False
    return True
