"""What the newest results measured, read from the part of their bodies that says it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from contract.result import Timings
from contract.wire import UnreadableMessageError, decode
from service.results import store
from service.results.model import Measurement


class _Tls(msgspec.Struct, frozen=True, rename="camel"):
    days_to_expiry: float | None = None


class _Vitals(msgspec.Struct, frozen=True, rename="camel"):
    ttfb_ms: float | None = None
    fcp_ms: float | None = None
    lcp_ms: float | None = None
    tbt_ms: float | None = None
    cls: float | None = None


class _Page(msgspec.Struct, frozen=True):
    metrics: _Vitals = _Vitals()


class _Evidence(msgspec.Struct, frozen=True, rename="camel"):
    tls: _Tls | None = None
    latency: dict[str, float] = {}
    packet_loss: float | None = None
    pages: tuple[_Page, ...] = ()


class _Outcome(msgspec.Struct, frozen=True):
    timings: Timings = Timings()
    evidence: _Evidence | None = None


class _Result(msgspec.Struct, frozen=True):
    """The part of the contract's Result that is read here."""

    outcome: _Outcome


_NOTHING = _Outcome()
_NO_EVIDENCE = _Evidence()


def measurements(connection: Connection, check_ids: Sequence[str]) -> dict[str, Measurement]:
    """What the newest final result of each check measured that has one."""
    return {row.check_id: _read(row) for row in store.newest(connection, check_ids)}


def _read(row: Row[Any]) -> Measurement:
    outcome = _read_outcome(row.body)
    evidence = outcome.evidence or _NO_EVIDENCE
    vitals = evidence.pages[0].metrics if evidence.pages else _Vitals()
    times = {
        "ttfb": vitals.ttfb_ms,
        "fcp": vitals.fcp_ms,
        "lcp": vitals.lcp_ms,
        "tbt": vitals.tbt_ms,
    }
    return Measurement(
        created_ms=row.created_ms,
        response_time_ms=row.response_time_ms,
        timings_ms=_present(msgspec.structs.asdict(outcome.timings)),
        latency_ms=evidence.latency,
        packet_loss=evidence.packet_loss,
        vitals_ms=_present(times),
        layout_shift=vitals.cls,
        days_to_expiry=evidence.tls.days_to_expiry if evidence.tls else None,
    )


def _read_outcome(body: bytes | None) -> _Outcome:
    try:
        return decode(body, _Result).outcome if body else _NOTHING
    except UnreadableMessageError:
        return _NOTHING


def _present(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}
