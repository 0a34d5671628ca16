"""DNS checks: does this name resolve as it should?

The response time is that of the whole resolution, servers that failed on the way included; the
lookup of the name server's own name is not part of it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from contract.assertions import Source
from contract.checks import DnsSpec
from contract.requests import IpFamily
from contract.result import CheckFailed, DnsEvidence, Failure, LogLine, Timings
from runners.net.dns.messages import (
    TYPE_NUMBERS,
    Question,
    build_question,
    render_json,
    render_text,
)
from runners.net.dns.name_servers import DNS_PORT, HostFiles, NameServer
from runners.net.dns.query import DnsAnswer, ask
from runners.net.sockets import literal_family, strip_brackets
from runners.runner import Fact, JsonText, Number, Observation, RunContext, Text
from runners.timing import ms_since, probe_within
from runners.tools import resolve_allowed

SERVER_TIMEOUT_S: Final = 5.0
"""How long to wait for one server: the largest threshold of a DNS check."""
NO_ERROR: Final = "NOERROR"

NameServers = Callable[[], Sequence[NameServer]]
"""The default chain, asked in order until one answers without an error code."""


def system_name_servers(files: HostFiles | None = None) -> NameServers:
    """The servers of `/etc/resolv.conf`, as it is at the time of the check."""
    watched = files or HostFiles()
    return lambda: watched.resolv_conf().servers


class DnsRunner:
    """Queries DNS servers."""

    spec = DnsSpec

    def __init__(self, default_chain: NameServers | None = None) -> None:
        self._default_chain = default_chain or system_name_servers()

    async def observe(self, spec: DnsSpec, ctx: RunContext) -> Observation:
        """Ask the check's name server, or the default chain."""
        probe = _Probe(spec, ctx, self._default_chain)
        return probe.build_observation(await probe_within(probe, ctx))


class _Probe:
    """One run of a DNS check."""

    def __init__(self, spec: DnsSpec, ctx: RunContext, default_chain: NameServers) -> None:
        self._request = spec.request
        self._asserted = frozenset(one.source for one in spec.assertions)
        self._ctx = ctx
        self._default_chain = default_chain
        self._answer: DnsAnswer | None = None
        self._started = time.perf_counter()
        self._server_lookup_ms: float | None = None
        self._took_ms: float | None = None
        self._asked: NameServer | None = None
        self._log: list[LogLine] = []
        self.waiting_for = "the name server"

    async def run(self) -> None:
        """Find the servers and query them."""
        question = build_question(self._request.query, self._request.record_type)
        servers = await self._servers()
        began = time.perf_counter()
        self._answer = await self._ask_in_turn(question, servers)
        self._took_ms = ms_since(began)
        self._note_no_records(self._answer)

    async def _servers(self) -> Sequence[NameServer]:
        port = self._request.port
        if not self._request.name_server:
            chain = self._default_chain()
            return chain if port is None else [replace(one, port=port) for one in chain]
        host = strip_brackets(self._request.name_server)
        self.waiting_for = f"the address of the name server {host}"
        # A custom server gets no failover, so its further addresses are not used.
        network = self._ctx.network
        family = literal_family(host) or IpFamily.IPV4
        address, *_ = await resolve_allowed(host, family, network, field="nameServer")
        if address != host:
            self._server_lookup_ms = ms_since(self._started)
        return [NameServer(address, port or DNS_PORT)]

    async def _ask_in_turn(self, question: Question, servers: Sequence[NameServer]) -> DnsAnswer:
        """Return the first answer without an error code, else the last answer.

        Raises:
            CheckFailed: no server answered; the failure is that of the last one.
        """
        answer: DnsAnswer | None = None
        *spare, last = servers
        for server in spare:
            try:
                answer = await self._ask(question, server)
            except CheckFailed as failed:
                self._note(failed.failure.message)
                continue
            if answer.message.response_code == NO_ERROR:
                return answer
            self._note(f"The name server {server} answered {answer.message.response_code}.")
        try:
            return await self._ask(question, last)
        except CheckFailed as failed:
            if answer is None:
                raise
            self._note(failed.failure.message)
            return answer

    async def _ask(self, question: Question, server: NameServer) -> DnsAnswer:
        self._asked = server
        self.waiting_for = f"the name server {server} to answer"
        answer = await ask(
            question, server, protocol=self._request.protocol, timeout_s=SERVER_TIMEOUT_S
        )
        if answer.queries > 1:
            self._note(f"The name server {server} was asked {answer.queries} times over UDP.")
        return answer

    def _note_no_records(self, answer: DnsAnswer) -> None:
        """Log that there are no records of the type: NOERROR passes without them too."""
        kind = self._request.record_type
        records = (record.kind == TYPE_NUMBERS[kind] for record in answer.message.answer)
        if answer.message.response_code == NO_ERROR and not any(records):
            name = self._request.query
            self._note(f"{answer.server} answered NOERROR for {name} {kind}: no {kind} records.")

    def _note(self, message: str) -> None:
        line = LogLine(after_ms=ms_since(self._started), level="WARN", message=message)
        self._log.append(line)

    def build_observation(self, failure: Failure | None) -> Observation:
        """What was observed, complete or not."""
        document = None if self._answer is None else render_json(self._answer.message)
        text = "" if self._answer is None else render_text(self._answer.message)
        return Observation(
            response_time_ms=self._took_ms,
            timings=Timings(dns=self._server_lookup_ms, total=ms_since(self._started)),
            facts=self._facts(document, text),
            failure=failure,
            evidence=self._evidence(document, text),
            log=tuple(self._log),
        )

    def _facts(self, document: dict[str, object] | None, text: str) -> dict[Source, Fact]:
        if self._answer is None or self._took_ms is None:
            return {}
        facts: dict[Source, Fact] = {
            Source.RESPONSE_TIME: Number(self._took_ms),
            Source.RESPONSE_CODE: Text(self._answer.message.response_code),
            Source.TEXT_ANSWER: Text(text),
        }
        if Source.JSON_ANSWER in self._asserted:
            facts[Source.JSON_ANSWER] = JsonText(msgspec.json.encode(document).decode())
        return facts

    def _evidence(self, document: dict[str, object] | None, text: str) -> DnsEvidence:
        answer = self._answer
        server = self._asked if answer is None else answer.server
        return DnsEvidence(
            query=self._request.query,
            record_type=self._request.record_type,
            name_server=str(server or self._request.name_server or ""),
            protocol=self._request.protocol if answer is None else answer.protocol,
            queries=None if answer is None else answer.queries,
            response_code=None if answer is None else answer.message.response_code,
            answer=document,
            text=text,
        )
