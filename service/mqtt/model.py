"""The packets of MQTT 3.1.1 that a server receives which publishes at QoS 0 and takes no messages.

Section numbers are those of the OASIS standard MQTT 3.1.1.
"""

from dataclasses import dataclass, field
from enum import IntEnum


class ConnectCode(IntEnum):
    """The server's answer to CONNECT (3.2.2.3)."""

    ACCEPTED = 0
    UNACCEPTABLE_LEVEL = 1
    IDENTIFIER_REJECTED = 2
    SERVER_UNAVAILABLE = 3
    BAD_CREDENTIALS = 4
    NOT_AUTHORIZED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """CONNECT: who the client is."""

    client_id: str
    keep_alive_s: int
    """0: the client need not send anything for any time."""
    is_clean: bool
    """Whether the client wants no state of an earlier connection."""
    has_will: bool
    """Whether the server is to publish something when the connection breaks."""
    username: str | None
    password: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Subscribe:
    """SUBSCRIBE: the topic filters that are asked for; at QoS 0, whatever the client asks."""

    packet_id: int
    filters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """UNSUBSCRIBE: the topic filters that are no longer wanted."""

    packet_id: int
    filters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PingRequest:
    """PINGREQ: the client is still there."""


@dataclass(frozen=True, slots=True)
class Disconnect:
    """DISCONNECT: the client leaves."""


Packet = Connect | Subscribe | Unsubscribe | PingRequest | Disconnect


class PacketError(Exception):
    """What arrived is no packet that this server takes; the connection must be closed."""


class ProtocolLevelError(PacketError):
    """The client speaks another version of MQTT than 3.1.1."""
