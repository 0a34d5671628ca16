"""Packets of MQTT 3.1.1: what is taken, what is refused, whatever arrives."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.mqtt.codec import (
    LIMIT_BYTES,
    PacketDecoder,
    encode_connack,
    encode_publish,
    encode_suback,
    encode_unsuback,
)
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
from tests.servers.mqtt_client import connect_packet, packet, text

PING, LEAVE = b"\xc0\x00", b"\xe0\x00"
SUBSCRIBE = packet(0x82, b"\x00\x07" + text("a/+") + b"\x00" + text("b/#") + b"\x02")
UNSUBSCRIBE = packet(0xA2, b"\x00\x08" + text("a/+"))
HELLO = connect_packet("account", "cu_key", keep_alive_s=60, client_id="cli")
STREAM = HELLO + SUBSCRIBE + PING + UNSUBSCRIBE + LEAVE
PACKETS = [
    Connect(
        client_id="cli",
        keep_alive_s=60,
        is_clean=True,
        has_will=False,
        username="account",
        password=b"cu_key",
    ),
    Subscribe(7, ("a/+", "b/#")),
    PingRequest(),
    Unsubscribe(8, ("a/+",)),
    Disconnect(),
]


def decode(*pieces: bytes) -> list[Packet]:
    decoder = PacketDecoder()
    return [one for piece in pieces for one in decoder.feed(piece)]


def refusal_of(*pieces: bytes) -> str | None:
    """Why they are refused. None: they are not; any other error is a fault."""
    try:
        decode(*pieces)
    except PacketError as refusal:
        return str(refusal)
    return None


def connect(flags: int, *rest: bytes, name: bytes = text("MQTT"), level: int = 4) -> bytes:
    return packet(0x10, name + bytes([level, flags, 0, 60]) + b"".join(rest))


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_packets_are_the_same_however_the_stream_is_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in pairwise(places)]
    assert decode(*pieces) == PACKETS


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_any_bytes_are_packets_or_refused(pieces: list[bytes]) -> None:
    assert refusal_of(*pieces) != ""


@given(st.integers(0, len(STREAM) - 1), st.integers(1, 255))
def test_a_stream_with_one_wrong_byte_is_packets_or_refused(at: int, change: int) -> None:
    changed = bytes([*STREAM[:at], STREAM[at] ^ change, *STREAM[at + 1 :]])
    assert refusal_of(changed) != ""


@pytest.mark.parametrize(
    "sent",
    [
        b"\xc1\x00",
        b"\xc0\x01\x00",
        b"\x80" + SUBSCRIBE[1:],
        packet(0x82, b"\x00\x00" + text("a") + b"\x00"),
        packet(0x82, b"\x00\x01"),
        packet(0x82, b"\x00\x01" + text("a") + b"\x03"),
        packet(0x82, b"\x00\x01" + text("a")),
        packet(0x82, b"\x00\x01\x00\x09a\x00"),
        packet(0x82, b"\x00\x01" + text(b"\xff") + b"\x00"),
        packet(0x82, b"\x00\x01" + text(b"\xed\xa0\x80") + b"\x00"),
        packet(0x82, b"\x00\x01" + text("a\0b") + b"\x00"),
        packet(0xA2, b"\x00\x01"),
        packet(0x30, text("topic") + b"hello"),
        packet(0x00),
        packet(0xF0),
        b"\xc0\x80\x80\x80\x80\x00",
        connect(0x01, text("c")),
        connect(0x40, text("c"), text("key")),
        connect(0x10, text("c")),
        connect(0x1C, text("c"), text("w"), text("m")),
        connect(0x80, text("c")),
        connect(0x02, text("c"), b"more"),
    ],
    ids=[
        "flags",
        "a ping with a body",
        "flags of SUBSCRIBE",
        "packet id 0",
        "no filter",
        "QoS 3",
        "no QoS",
        "a length beyond the end",
        "no UTF-8",
        "half a surrogate pair",
        "U+0000",
        "nothing to unsubscribe",
        "PUBLISH",
        "type 0",
        "type 15",
        "a length of 5 bytes",
        "the reserved flag",
        "a password without a user",
        "a QoS of no will",
        "a will of QoS 3",
        "no user where one is said to be",
        "more after the end",
    ],
)
def test_what_is_no_packet_that_a_server_takes_here_is_refused(sent: bytes) -> None:
    with pytest.raises(PacketError):
        decode(sent)


@pytest.mark.parametrize(
    "sent", [connect(2, text("c"), level=5), connect(2, text("c"), name=text("MQIsdp"), level=3)]
)
def test_another_version_of_the_protocol_is_told_apart(sent: bytes) -> None:
    with pytest.raises(ProtocolLevelError):
        decode(sent)


def test_a_packet_is_refused_by_its_length_before_it_is_there() -> None:
    long = LIMIT_BYTES - 4
    assert decode(packet(0x82, b"\x00\x01" + text("a" * (long - 5)) + b"\x00")) != []
    with pytest.raises(PacketError, match="16384"):
        decode(b"\x82" + bytes([LIMIT_BYTES & 127 | 128, LIMIT_BYTES >> 7 & 127 | 128, 1]))


def test_a_will_is_read_past_and_noted() -> None:
    [found] = decode(connect(0x06, text("c"), text("will/topic"), text(b"\xff")))
    assert isinstance(found, Connect)
    assert found.has_will
    assert found.username is found.password is None


def test_a_password_is_in_no_text_of_a_packet() -> None:
    [found] = decode(HELLO)
    assert "cu_key" not in repr(found)


def test_answers_are_those_of_the_standard() -> None:
    assert encode_connack(ConnectCode.BAD_CREDENTIALS) == b"\x20\x02\x00\x04"
    assert encode_suback(7, [0, 0x80]) == b"\x90\x04\x00\x07\x00\x80"
    assert encode_unsuback(8) == b"\xb0\x02\x00\x08"
    assert encode_publish("a/b", b"{}") == b"\x30\x07\x00\x03a/b{}"


@pytest.mark.parametrize(
    ("size", "length"),
    [
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (16_383, b"\xff\x7f"),
        (16_384, b"\x80\x80\x01"),
        (2_097_152, b"\x80\x80\x80\x01"),
    ],
)
def test_lengths_are_those_of_the_standard(size: int, length: bytes) -> None:
    made = encode_publish("a", b"x" * (size - 3))
    assert made.startswith(b"\x30" + length + b"\x00\x01a")
    assert len(made) == 1 + len(length) + size


def test_a_decoder_keeps_no_more_than_a_packet() -> None:
    decoder = PacketDecoder(limit_bytes=10)
    assert list(decoder.feed(PING * 30_000)) == [PingRequest()] * 30_000
    assert list(decoder.feed(b"\x82\x08\x00\x01")) == []
    with pytest.raises(PacketError):
        list(decoder.feed(b"\x00\x03a/b\x00\x82\x09"))
