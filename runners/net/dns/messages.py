"""DNS messages (RFC 1035): built, read, and shown as text.

DNS messages: making questions, reading answers. Pure.

Names and record data are dnspython's to read. The message around them is read here: its general
message classes take three times as long, and half of a check's time.
"""

import secrets
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import dns.exception
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.reversename
import dns.wire
import msgspec

from contract.requests import RecordType
from contract.result import CheckFailed, FailureKind
from runners.net.sockets import literal_family

HEADER_BYTES: Final = 12
IN: Final = 1

FLAGS: Final[Mapping[str, int]] = {
    "QR": 0x8000,
    "AA": 0x0400,
    "TC": 0x0200,
    "RD": 0x0100,
    "RA": 0x0080,
    "AD": 0x0020,
    "CD": 0x0010,
}
_ASKED_FLAGS: Final = FLAGS["RD"] | FLAGS["AD"]
"""As dig asks: recurse, and say whether the data was validated. No EDNS, as the C library asks:
servers that choke on it are found in closed networks, and what does not fit comes by TCP."""

TYPE_NUMBERS: Final[Mapping[RecordType, int]] = {
    kind: int(dns.rdatatype.from_text(kind)) for kind in RecordType
}
_TYPE_NAMES: Final[Mapping[int, str]] = {
    number: kind.value for kind, number in TYPE_NUMBERS.items()
}
_RESPONSE_CODES: Final[Mapping[int, str]] = {
    code: dns.rcode.to_text(dns.rcode.Rcode(code)) for code in range(16)
}
_ADDRESS_FAMILIES: Final = {
    TYPE_NUMBERS[RecordType.A]: (socket.AF_INET, 4),
    TYPE_NUMBERS[RecordType.AAAA]: (socket.AF_INET6, 16),
}

_HEADER: Final = struct.Struct("!HHHHHH")
_KIND: Final = struct.Struct("!HH")
_RECORD: Final = struct.Struct("!HHIH")
_TO_FIRST_NAME: Final = b"\xc0\x0c"
"""A pointer to the name of the question: how nearly every answer names its owner."""


class MalformedMessageError(ValueError):
    """These bytes are no DNS message."""


class Question(msgspec.Struct, frozen=True):
    """A name and a record type, ready to be sent."""

    record_type: RecordType
    wire: bytes
    """The question section."""

    def query(self) -> bytes:
        """A message that asks, with a random id."""
        head = _HEADER.pack(secrets.randbits(16), _ASKED_FLAGS, 1, 0, 0, 0)
        return head + self.wire


class DnsRecord(msgspec.Struct, frozen=True):
    """One resource record."""

    name: str
    """With its final dot."""
    kind: int
    record_class: int
    ttl_s: int
    value: str
    """As in a zone file; names in it have their final dot."""


class DnsMessage(msgspec.Struct, frozen=True):
    """An answer as it was read."""

    message_id: int
    flags: int
    questions: tuple[tuple[str, int, int], ...] = ()
    """Name, type and class."""
    answer: tuple[DnsRecord, ...] = ()
    authority: tuple[DnsRecord, ...] = ()
    additional: tuple[DnsRecord, ...] = ()

    @property
    def rcode(self) -> int:
        """The response code as a number."""
        return self.flags & 0x0F

    @property
    def response_code(self) -> str:
        """The response code by name, as in NOERROR."""
        return _RESPONSE_CODES[self.rcode]

    def has(self, flag: str) -> bool:
        """Is this one of `FLAGS` set?"""
        return bool(self.flags & FLAGS[flag])


def type_name(kind: int) -> str:
    """A record type by name; TYPE1234 when it has none."""
    return _TYPE_NAMES.get(kind) or dns.rdatatype.to_text(dns.rdatatype.RdataType.make(kind))


def ask_for(query: str, record_type: RecordType) -> Question:
    """The question for a name; a PTR query may be an address.

    Raises:
        CheckFailed: of kind DNS, when it is no DNS name.
    """
    try:
        if record_type is RecordType.PTR and literal_family(query) is not None:
            name = dns.reversename.from_address(query)
        else:
            name = dns.name.from_text(query)
    except (dns.exception.DNSException, UnicodeError) as problem:
        raise CheckFailed(
            FailureKind.DNS,
            f"{query} is no DNS name: {str(problem).rstrip('.')}.",
            {"code": "EBADNAME", "hostname": query},
        ) from problem
    labels = b"".join(bytes((len(label),)) + label for label in name.labels)
    return Question(record_type, labels + _KIND.pack(TYPE_NUMBERS[record_type], IN))


def answers(packet: bytes, query: bytes) -> bool:
    """Is this an answer to the query? Same id, a response, the same question.

    An error may leave the question out.
    """
    if len(packet) < HEADER_BYTES or packet[:2] != query[:2] or packet[2] & 0xF8 != 0x80:
        return False
    if packet[4:6] == b"\0\0":
        return bool(packet[3] & 0x0F)
    asked = query[HEADER_BYTES:]
    seen = packet[HEADER_BYTES : HEADER_BYTES + len(asked)]
    return seen == asked or seen.lower() == asked.lower()


def is_truncated(packet: bytes) -> bool:
    """Did the answer not fit? What follows the header may then be cut anywhere."""
    return bool(packet[2] & 0x02)


def read_message(packet: bytes) -> DnsMessage:
    """Read a whole message.

    Raises:
        MalformedMessageError: it does not keep to the format.
    """
    try:
        return _Reader(packet).message()
    except (dns.exception.DNSException, ValueError, struct.error, IndexError) as problem:
        raise MalformedMessageError(str(problem) or type(problem).__name__) from problem


@dataclass(slots=True)
class _Reader:
    """Walks through one message."""

    packet: bytes
    at: int = HEADER_BYTES
    first_name: str = field(default="", init=False)

    def message(self) -> DnsMessage:
        message_id, flags, *counts = _HEADER.unpack_from(self.packet)
        questions = tuple(self._question() for _ in range(counts[0]))
        answer, authority, additional = (
            tuple(self._record() for _ in range(count)) for count in counts[1:]
        )
        return DnsMessage(message_id, flags, questions, answer, authority, additional)

    def _question(self) -> tuple[str, int, int]:
        name = self._name()
        self.first_name = self.first_name or name
        kind, record_class = _KIND.unpack_from(self.packet, self.at)
        self.at += _KIND.size
        return name, kind, record_class

    def _record(self) -> DnsRecord:
        name = self._name()
        kind, record_class, ttl_s, length = _RECORD.unpack_from(self.packet, self.at)
        start = self.at + _RECORD.size
        self.at = start + length
        if self.at > len(self.packet):
            raise MalformedMessageError("a record is cut short")
        value = self._value(kind, record_class, start, length)
        return DnsRecord(name, kind, record_class, ttl_s, value)

    def _name(self) -> str:
        if self.first_name and self.packet[self.at : self.at + 2] == _TO_FIRST_NAME:
            self.at += 2
            return self.first_name
        name, length = dns.name.from_wire(self.packet, self.at)
        self.at += length
        return name.to_text()

    def _value(self, kind: int, record_class: int, start: int, length: int) -> str:
        family, size = _ADDRESS_FAMILIES.get(kind, (None, 0))
        if family is not None and length == size and record_class == IN:
            return socket.inet_ntop(family, self.packet[start : start + length])
        # Of an OPT record, class and TTL mean other things; dnspython reads its data alike.
        return dns.rdata.from_wire(
            dns.rdataclass.RdataClass.make(record_class),
            dns.rdatatype.RdataType.make(kind),
            self.packet,
            start,
            length,
        ).to_text()


_JSON_FLAGS: Final = ("TC", "RD", "RA", "AD", "CD")


def as_json(message: DnsMessage) -> dict[str, object]:
    """The JSON form: names with their final dot, types as numbers, data as in a zone file."""
    return {
        "Status": message.rcode,
        **{flag: message.has(flag) for flag in _JSON_FLAGS},
        "Question": [{"name": name, "type": kind} for name, kind, _ in message.questions],
        "Answer": [
            {"name": one.name, "type": one.kind, "TTL": one.ttl_s, "data": one.value}
            for one in message.answer
        ],
    }


def as_text(message: DnsMessage) -> str:
    """The text form, as dig prints it, without the time it took."""
    counts = (
        f"QUERY: {len(message.questions)}, ANSWER: {len(message.answer)}, "
        f"AUTHORITY: {len(message.authority)}, ADDITIONAL: {len(message.additional)}"
    )
    flags = " ".join(flag.lower() for flag in FLAGS if message.has(flag))
    lines = [
        f";; opcode: QUERY, status: {message.response_code}, id: {message.message_id}",
        f";; flags: {flags}; {counts}",
        "",
        ";; QUESTION SECTION:",
        *(f";{name}\t\t{_kind(kind, of)}" for name, kind, of in message.questions),
        *_section("ANSWER", message.answer),
        *_section("AUTHORITY", message.authority),
        *_section("ADDITIONAL", message.additional),
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, records: Sequence[DnsRecord]) -> list[str]:
    if not records:
        return []
    lines = (
        f"{one.name}\t{one.ttl_s}\t{_kind(one.kind, one.record_class)}\t{one.value}"
        for one in records
    )
    return ["", f";; {title} SECTION:", *lines]


def _kind(kind: int, record_class: int) -> str:
    name = (
        "IN"
        if record_class == IN
        else dns.rdataclass.to_text(dns.rdataclass.RdataClass.make(record_class))
    )
    return f"{name}\t{type_name(kind)}"
