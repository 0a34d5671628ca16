"""Packets of MQTT 3.1.1 from and to bytes, without input or output.

It has exactly the packets of a server that publishes at QoS 0 and takes no messages.
Section numbers are those of the OASIS standard MQTT 3.1.1.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final

from service.mqtt.model import (
    Connect,
    ConnectCode,
    Disconnect,
    Packet,
    PacketError,
    PingRequest,
    ProtocolLevelError,
    Subscribe,
    Unsubscribe,
)

LIMIT_BYTES: Final = 16 * 1024
"""The longest packet that is taken."""
REFUSED: Final = 0x80
"""The return code of a filter that was not subscribed (3.9.3)."""
PING_RESPONSE: Final = b"\xd0\x00"
_LEVEL: Final = 4
"""The protocol level of MQTT 3.1.1."""
_LENGTH_BYTES: Final = 4
"""The longest remaining length (2.2.3)."""
_USERNAME: Final = 0x80
_PASSWORD: Final = 0x40
_WILL_RETAIN: Final = 0x20
_WILL_QOS: Final = 0x18
_WILL: Final = 0x04
_CLEAN: Final = 0x02
_RESERVED: Final = 0x01
_MOST_QOS: Final = 2


class _Type(IntEnum):
    """The control packets (2.2.1)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    DISCONNECT = 14


class PacketDecoder:
    """Cuts a stream of bytes into packets; never keeps more than one packet's bytes."""

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Packet]:
        """The packets that these bytes complete.

        Raises:
            PacketError: they are none, or one is too long.
        """
        self._buffer += data
        while (size := self._size()) is not None and size <= len(self._buffer):
            packet = bytes(self._buffer[:size])
            del self._buffer[:size]
            yield _decode(packet)

    def _size(self) -> int | None:
        """How long the next packet is. None: its length is not there yet."""
        length = 0
        for position, byte in enumerate(self._buffer[1 : 1 + _LENGTH_BYTES]):
            length |= (byte & 0x7F) << (7 * position)
            if not byte & 0x80:
                size = 2 + position + length
                if size > self._limit_bytes:
                    raise PacketError(
                        f"A packet has {size} bytes; send at most {self._limit_bytes}."
                    )
                return size
        if len(self._buffer) > _LENGTH_BYTES:
            raise PacketError("The remaining length of a packet has more than 4 bytes.")
        return None


class _Fields:
    """What is left of a packet after its fixed header."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_empty(self) -> bool:
        """Whether everything has been taken."""
        return self._at == len(self._data)

    def byte(self) -> int:
        """Take one byte."""
        return self._take(1)[0]

    def number(self) -> int:
        """Take two bytes, the most significant first (1.5.2)."""
        return int.from_bytes(self._take(2), "big")

    def binary(self) -> bytes:
        """Take bytes with their length before them."""
        return self._take(self.number())

    def text(self) -> str:
        """Take a string in UTF-8 without U+0000 (1.5.3)."""
        try:
            text = self.binary().decode()
        except UnicodeDecodeError as problem:
            raise PacketError("A string of a packet is not UTF-8.") from problem
        if "\0" in text:
            raise PacketError("A string of a packet has the character U+0000.")
        return text

    def packet_id(self) -> int:
        """Take a packet identifier, which is never 0 (2.3.1)."""
        number = self.number()
        if not number:
            raise PacketError("A packet identifier is 0.")
        return number

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise PacketError("A packet ends too early.")
        self._at += count
        return taken


def _decode(packet: bytes) -> Packet:
    kind, flags = packet[0] >> 4, packet[0] & 0x0F
    if kind not in _DECODERS:
        raise PacketError(f"A packet of type {kind} came; this server only publishes.")
    wanted_flags, decode = _DECODERS[_Type(kind)]
    if flags != wanted_flags:
        raise PacketError(f"A packet of type {kind} has the flags {flags}; use {wanted_flags}.")
    start = next(at for at in range(1, 2 + _LENGTH_BYTES) if not packet[at] & 0x80) + 1
    fields = _Fields(packet[start:])
    decoded = decode(fields)
    if not fields.is_empty:
        raise PacketError(f"A packet of type {kind} goes on after its end.")
    return decoded


def _connect(fields: _Fields) -> Connect:
    """CONNECT (3.1)."""
    name, level = fields.binary(), fields.byte()
    if (name, level) != (b"MQTT", _LEVEL):
        raise ProtocolLevelError("The client does not speak MQTT 3.1.1 (level 4).")
    flags, keep_alive_s = fields.byte(), fields.number()
    _require_sound(flags)
    client_id = fields.text()
    if flags & _WILL:
        fields.text()
        fields.binary()
    return Connect(
        client_id=client_id,
        keep_alive_s=keep_alive_s,
        is_clean=bool(flags & _CLEAN),
        has_will=bool(flags & _WILL),
        username=fields.text() if flags & _USERNAME else None,
        password=fields.binary() if flags & _PASSWORD else None,
    )


def _require_sound(flags: int) -> None:
    """Refuse flags of CONNECT that contradict each other (3.1.2.3 to 3.1.2.9)."""
    will_qos = (flags & _WILL_QOS) >> 3
    if (
        flags & _RESERVED
        or will_qos > _MOST_QOS
        or (flags & (_WILL_QOS | _WILL_RETAIN) and not flags & _WILL)
        or (flags & _PASSWORD and not flags & _USERNAME)
    ):
        raise PacketError(f"CONNECT has the flags {flags:08b}, which contradict each other.")


def _subscribe(fields: _Fields) -> Subscribe:
    """SUBSCRIBE (3.8)."""
    packet_id = fields.packet_id()
    filters: list[str] = []
    while not filters or not fields.is_empty:
        filters.append(fields.text())
        if fields.byte() > _MOST_QOS:
            raise PacketError("SUBSCRIBE asks for a QoS above 2.")
    return Subscribe(packet_id, tuple(filters))


def _unsubscribe(fields: _Fields) -> Unsubscribe:
    """UNSUBSCRIBE (3.10)."""
    packet_id = fields.packet_id()
    filters: list[str] = []
    while not filters or not fields.is_empty:
        filters.append(fields.text())
    return Unsubscribe(packet_id, tuple(filters))


_DECODERS: Final[Mapping[_Type, tuple[int, Callable[[_Fields], Packet]]]] = {
    _Type.CONNECT: (0, _connect),
    _Type.SUBSCRIBE: (2, _subscribe),
    _Type.UNSUBSCRIBE: (2, _unsubscribe),
    _Type.PINGREQ: (0, lambda _: PingRequest()),
    _Type.DISCONNECT: (0, lambda _: Disconnect()),
}
"""By type: the flags that it must have (2.2.2), and what reads the rest."""


def encode_connack(code: ConnectCode) -> bytes:
    """CONNACK without a present session, as none is ever kept."""
    return _encode(_Type.CONNACK, bytes((0, code)))


def encode_suback(packet_id: int, codes: Sequence[int]) -> bytes:
    """SUBACK with a QoS, or `REFUSED`, for each filter."""
    return _encode(_Type.SUBACK, packet_id.to_bytes(2, "big") + bytes(codes))


def encode_unsuback(packet_id: int) -> bytes:
    """UNSUBACK."""
    return _encode(_Type.UNSUBACK, packet_id.to_bytes(2, "big"))


def encode_publish(topic: str, payload: bytes) -> bytes:
    """PUBLISH at QoS 0, which has no packet identifier."""
    name = topic.encode()
    return _encode(_Type.PUBLISH, len(name).to_bytes(2, "big") + name + payload)


def _encode(kind: _Type, rest: bytes) -> bytes:
    length, left = bytearray(), len(rest)
    while True:
        left, byte = left >> 7, left & 0x7F
        length.append(byte | 0x80 if left else byte)
        if not left:
            return bytes((kind << 4,)) + bytes(length) + rest
