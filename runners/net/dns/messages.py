"""DNS messages (RFC 1035): builds questions, reads answers, and renders them as text. Pure.

dnspython reads names and record data. The message around them is read here: dnspython's message
classes take three times as long, which would be half of a check's time.
"""

import secrets
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
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
from contract.targets import ascii_host
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
_QUERY_FLAGS: Final = FLAGS["RD"] | FLAGS["AD"]
"""The flags that dig sets: recurse, and say whether the data was validated. EDNS is left out, as by
the C library: some servers in closed networks fail on it, and long answers come over TCP."""

TYPE_NUMBERS: Final[Mapping[RecordType, int]] = {
    kind: int(dns.rdatatype.from_text(kind)) for kind in RecordType
}
_TYPE_NAMES: Final[Mapping[int, str]] = {
    number: kind.value for kind, number in TYPE_NUMBERS.items()
}
_OPT: Final = int(dns.rdatatype.OPT)
_EXTENDED_SHIFT: Final = 24
"""The upper eight bits of an OPT record's TTL are those of the response code (RFC 6891, 6.1.3)."""
_ADDRESS_FAMILIES: Final = {
    TYPE_NUMBERS[RecordType.A]: (socket.AF_INET, 4),
    TYPE_NUMBERS[RecordType.AAAA]: (socket.AF_INET6, 16),
}

_HEADER: Final = struct.Struct("!HHHHHH")
_KIND: Final = struct.Struct("!HH")
_RECORD: Final = struct.Struct("!HHIH")
_POINTER_TO_QUESTION: Final = b"\xc0\x0c"
"""A compression pointer to the question's name, with which nearly every answer names its owner."""


class MalformedMessageError(ValueError):
    """These bytes are no DNS message."""


class Question(msgspec.Struct, frozen=True):
    """A name and a record type, encoded for a query."""

    record_type: RecordType
    wire: bytes
    """The question section of the message."""

    def query(self) -> bytes:
        """Encode a query with a random id."""
        head = _HEADER.pack(secrets.randbits(16), _QUERY_FLAGS, 1, 0, 0, 0)
        return head + self.wire


class DnsRecord(msgspec.Struct, frozen=True):
    """One resource record."""

    name: str
    """The owner's name, with its final dot."""
    kind: int
    record_class: int
    ttl_s: int
    value: str
    """The data in the form of a zone file; names in it have their final dot."""


class DnsMessage(msgspec.Struct, frozen=True):
    """A DNS message as it was read."""

    message_id: int
    flags: int
    questions: tuple[tuple[str, int, int], ...] = ()
    """Name, type and class of each question."""
    answer: tuple[DnsRecord, ...] = ()
    authority: tuple[DnsRecord, ...] = ()
    additional: tuple[DnsRecord, ...] = ()

    @property
    def rcode(self) -> int:
        """The response code as a number, with the bits that an OPT record adds."""
        code = self.flags & 0x0F
        for record in self.additional:
            if record.kind == _OPT:
                return record.ttl_s >> _EXTENDED_SHIFT << 4 | code
        return code

    @property
    def response_code(self) -> str:
        """The response code by name, such as NOERROR; RCODE3841 when it has none."""
        return _name_response_code(self.rcode)

    def has(self, flag: str) -> bool:
        """Whether this one of `FLAGS` is set."""
        return bool(self.flags & FLAGS[flag])


@lru_cache(maxsize=64)
def _name_response_code(code: int) -> str:
    name = dns.rcode.to_text(dns.rcode.Rcode.make(code))
    return f"RCODE{code}" if name.isdecimal() else name


def type_name(kind: int) -> str:
    """A record type by name; TYPE1234 when it has none."""
    return _TYPE_NAMES.get(kind) or dns.rdatatype.to_text(dns.rdatatype.RdataType.make(kind))


def build_question(query: str, record_type: RecordType) -> Question:
    """Build the question for a name; a PTR query may be an address.

    Raises:
        CheckFailed: of kind DNS, when it is no DNS name.
    """
    try:
        if record_type is RecordType.PTR and literal_family(query) is not None:
            name = dns.reversename.from_address(query)
        else:
            name = dns.name.from_text(ascii_host(query))
    except (dns.exception.DNSException, UnicodeError) as problem:
        raise CheckFailed(
            FailureKind.DNS,
            f"{query} is no DNS name: {str(problem).rstrip('.')}.",
            {"code": "EBADNAME", "hostname": query},
        ) from problem
    labels = b"".join(bytes((len(label),)) + label for label in name.labels)
    return Question(record_type, labels + _KIND.pack(TYPE_NUMBERS[record_type], IN))


def is_answer(packet: bytes, query: bytes) -> bool:
    """Whether the packet is a response to the query: the same id and the same question.

    An error response may leave the question out.
    """
    if len(packet) < HEADER_BYTES or packet[:2] != query[:2] or packet[2] & 0xF8 != 0x80:
        return False
    if packet[4:6] == b"\0\0":
        return bool(packet[3] & 0x0F) or _has_extended_code(packet)
    asked = query[HEADER_BYTES:]
    seen = packet[HEADER_BYTES : HEADER_BYTES + len(asked)]
    return seen == asked or seen.lower() == asked.lower()


def _has_extended_code(packet: bytes) -> bool:
    try:
        return bool(read_message(packet).rcode)
    except MalformedMessageError:
        return False


def is_truncated(packet: bytes) -> bool:
    """Whether the answer did not fit; what follows the header may then be cut anywhere."""
    return bool(packet[2] & 0x02)


def read_message(packet: bytes) -> DnsMessage:
    """Read a whole message.

    Raises:
        MalformedMessageError: it violates the format.
    """
    try:
        return _Reader(packet).message()
    except (dns.exception.DNSException, ValueError, struct.error, IndexError) as problem:
        raise MalformedMessageError(str(problem) or type(problem).__name__) from problem


@dataclass(slots=True)
class _Reader:
    """Reads one message from its beginning to its end."""

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
        if self.first_name and self.packet[self.at : self.at + 2] == _POINTER_TO_QUESTION:
            self.at += 2
            return self.first_name
        name, length = dns.name.from_wire(self.packet, self.at)
        self.at += length
        return name.to_text()

    def _value(self, kind: int, record_class: int, start: int, length: int) -> str:
        family, size = _ADDRESS_FAMILIES.get(kind, (None, 0))
        if family is not None and length == size and record_class == IN:
            return socket.inet_ntop(family, self.packet[start : start + length])
        # In an OPT record class and TTL have other meanings; dnspython reads its data all the same.
        return dns.rdata.from_wire(
            dns.rdataclass.RdataClass.make(record_class),
            dns.rdatatype.RdataType.make(kind),
            self.packet,
            start,
            length,
        ).to_text()


_JSON_FLAGS: Final = ("TC", "RD", "RA", "AD", "CD")


def render_json(message: DnsMessage) -> dict[str, object]:
    """Render as JSON: names with their final dot, types as numbers, data as in a zone file."""
    return {
        "Status": message.rcode,
        **{flag: message.has(flag) for flag in _JSON_FLAGS},
        "Question": [{"name": name, "type": kind} for name, kind, _ in message.questions],
        "Answer": [
            {"name": one.name, "type": one.kind, "TTL": one.ttl_s, "data": one.value}
            for one in message.answer
        ],
    }


def render_text(message: DnsMessage) -> str:
    """Render as text, as dig prints it, without the time it took."""
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
        *(f";{name}\t\t{_render_kind(kind, of)}" for name, kind, of in message.questions),
        *_render_section("ANSWER", message.answer),
        *_render_section("AUTHORITY", message.authority),
        *_render_section("ADDITIONAL", message.additional),
    ]
    return "\n".join(lines) + "\n"


def _render_section(title: str, records: Sequence[DnsRecord]) -> list[str]:
    if not records:
        return []
    lines = (
        f"{one.name}\t{one.ttl_s}\t{_render_kind(one.kind, one.record_class)}\t{one.value}"
        for one in records
    )
    return ["", f";; {title} SECTION:", *lines]


def _render_kind(kind: int, record_class: int) -> str:
    name = (
        "IN"
        if record_class == IN
        else dns.rdataclass.to_text(dns.rdataclass.RdataClass.make(record_class))
    )
    return f"{name}\t{type_name(kind)}"
