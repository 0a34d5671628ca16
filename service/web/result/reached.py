"""How far a run without an answer got, and what to try from there."""

import ipaddress
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contract.evidence import HttpEvidence
from contract.result import (
    DnsEvidence,
    Evidence,
    Failure,
    FailureKind,
    Outcome,
    TcpEvidence,
    Timings,
)
from service.vault.texts import HIDDEN
from service.web.states import State

_NAMES: Final[Mapping[str, str]] = {
    "dns": "Look up the name",
    "tcp": "Connect",
    "tls": "Agree on TLS",
    "first_byte": "Wait for the answer",
    "download": "Read the answer",
    "query": "Ask the name server",
}
_OF_HTTP: Final = ("dns", "tcp", "tls", "first_byte", "download")
_OF_CONNECTIONS: Final = ("dns", "tcp", "tls")
_OF_QUERIES: Final = ("query",)
_STOPS: Final[Mapping[FailureKind, str]] = {
    FailureKind.DNS: "dns",
    FailureKind.CONNECT: "tcp",
    FailureKind.EGRESS: "tcp",
    FailureKind.TLS: "tls",
    FailureKind.PROTOCOL: "first_byte",
}
"""Where a failure of a kind ends a run."""
_ADVICE: Final[Mapping[FailureKind, str]] = {
    FailureKind.DNS: "See whether the name resolves on the agent's host.",
    FailureKind.CONNECT: "See whether the agent's host reaches the port: a service that is down,"
    " a firewall and a wrong port look alike from here.",
    FailureKind.EGRESS: "The agent may not send there. EGRESS_ALLOW and EGRESS_DENY of the agent"
    " say where it may.",
    FailureKind.TLS: "See what the server offers and which certificate it sends.",
    FailureKind.PROTOCOL: "See what the server sends when it is asked on the agent's host.",
    FailureKind.TIMEOUT: "See how long it takes on the agent's host.",
}
_FACTS: Final = (
    ("code", "Code"),
    ("syscall", "System call"),
    ("hostname", "Host"),
    ("address", "Address"),
    ("port", "Port"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase of a run that got no answer."""

    name: str
    state: State
    """`passing`: it is done; `failing`: the run ended here; `unknown`: it was not reached."""
    took_ms: float | None
    """None: it was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Where a run without an answer ended."""

    phases: tuple[Phase, ...]
    facts: tuple[tuple[str, str], ...]
    advice: str
    """What to try; empty: there is nothing to say."""
    command: str
    """What to run on the agent's host; empty: no command shows more."""


def find_reached(outcome: Outcome | None) -> Reached | None:
    """Where a run ended. None: it got an answer, or its page says it otherwise."""
    failure = outcome.failure if outcome else None
    if outcome is None or failure is None or _is_answered(outcome):
        return None
    phases = _list_phases(outcome, failure)
    if not phases:
        return None
    return Reached(
        phases=phases,
        facts=tuple(
            (name, str(failure.detail[key]))
            for key, name in _FACTS
            if failure.detail.get(key) is not None
        ),
        advice=_ADVICE.get(failure.kind, ""),
        command="" if failure.kind is FailureKind.EGRESS else _command(outcome, failure),
    )


def _is_answered(outcome: Outcome) -> bool:
    match outcome.evidence:
        case HttpEvidence(response=response):
            return response is not None
        case TcpEvidence(tls=tls):
            timings = outcome.timings
            return timings.tcp is not None and (tls is None or timings.tls is not None)
        case DnsEvidence(response_code=code):
            return code is not None
        case None:
            return False
        case other:
            return getattr(other, "resolved_ip", "") is not None


def _list_phases(outcome: Outcome, failure: Failure) -> tuple[Phase, ...]:
    phases = _choose_phases(outcome.evidence)
    stop = phases[0] if len(phases) == 1 else _find_stop(failure, phases)
    known = [one for one in phases if one == stop or _happens(one, outcome, failure)]
    if stop is None and failure.kind is FailureKind.TIMEOUT:
        stop = next((one for one in known if _time(outcome.timings, one) is None), None)
    if stop is None:
        return ()
    at = known.index(stop)
    return tuple(
        Phase(
            name=_NAMES[one],
            state=State.PASSING if place < at else State.FAILING if place == at else State.UNKNOWN,
            took_ms=_time(outcome.timings, one) if place <= at else None,
        )
        for place, one in enumerate(known)
    )


def _choose_phases(evidence: Evidence | None) -> Sequence[str]:
    """What such a run goes through, in order."""
    match evidence:
        case HttpEvidence():
            return _OF_HTTP
        case DnsEvidence():
            return _OF_QUERIES
        case _:
            return _OF_CONNECTIONS


def _find_stop(failure: Failure, phases: Sequence[str]) -> str | None:
    """The phase in which it ended. None: nobody knows."""
    stop = _STOPS.get(failure.kind)
    if failure.kind is FailureKind.TIMEOUT:
        phase = str(failure.detail.get("phase", ""))
        stop = "first_byte" if phase == "firstByte" else phase
    return stop if stop in phases else None


def _happens(phase: str, outcome: Outcome, failure: Failure) -> bool:
    """Whether a run goes through a phase: an address is not looked up, and HTTP has no TLS."""
    evidence = outcome.evidence
    if phase == "dns":
        return not _is_address(_host(evidence, failure))
    if phase == "tls":
        is_https = isinstance(evidence, HttpEvidence) and evidence.request.url.startswith("https:")
        return is_https or getattr(evidence, "tls", None) is not None
    return True


def _time(timings: Timings, phase: str) -> float | None:
    return getattr(timings, phase, None)


def _host(evidence: Evidence | None, failure: Failure) -> str:
    found = getattr(evidence, "hostname", None) or failure.detail.get("hostname")
    return str(found or failure.detail.get("address") or "")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _command(outcome: Outcome, failure: Failure) -> str:
    """A command that shows the same fault to whoever runs it on the agent's host."""
    evidence = outcome.evidence
    host, port = _host(evidence, failure), failure.detail.get("port")
    if isinstance(evidence, DnsEvidence):
        server, _, number = evidence.name_server.rpartition(":")
        words = ["dig", f"@{server.strip('[]')}", "-p", number, evidence.query]
        return shlex.join([*words, evidence.record_type])
    if failure.kind is FailureKind.DNS:
        return shlex.join(["dig", host]) if host else ""
    if failure.kind is FailureKind.TLS and host and port:
        where = f"{host}:{port}"
        return shlex.join(["openssl", "s_client", "-connect", where, "-servername", host])
    if isinstance(evidence, HttpEvidence) and HIDDEN not in evidence.request.url:
        return shlex.join(["curl", "-v", "-o", "/dev/null", evidence.request.url])
    return shlex.join(["nc", "-vz", host, str(port)]) if host and port else ""
