"""A DNS answer as people and assertions read it: as dig prints it, and as JSON. Pure."""

from collections.abc import Sequence
from typing import Final

import dns.rdataclass

from runners.kit.dns.messages import FLAGS, IN, DnsMessage, DnsRecord, type_name

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
