"""Builders of what a run may use: real tools, loopback targets."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from contract.requests import IpFamily
from runners.net.dns.resolve import Resolver, lookup_error, resolve_literal
from runners.net.egress.rules import EgressRules
from runners.net.http.body_memory import BodyMemory
from runners.net.sockets import literal_family
from runners.runner import RunContext
from runners.scripting.harness import Harness
from runners.tools import Tools, open_tools
from tests.builders.patience import LONG_S


@dataclass
class TableResolver:
    """A resolver that knows the names of a table, and address literals."""

    table: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    async def resolve(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        literal = resolve_literal(hostname, family)
        if literal is not None:
            return literal
        known = self.table.get(hostname, (hostname,))
        found = tuple(address for address in known if literal_family(address) is family)
        if not found:
            raise lookup_error(hostname, family, "the name does not exist")
        return found


@dataclass
class PingTable:
    """A ping book: seconds of silence by token."""

    silences_s: Mapping[str, float] = field(default_factory=dict)

    def silent_for_s(self, token: str) -> float | None:
        return self.silences_s.get(token)


@contextlib.asynccontextmanager
async def a_network(
    *,
    egress: EgressRules | None = None,
    resolver: Resolver | None = None,
    names: Mapping[str, tuple[str, ...]] | None = None,
    extra_ca_pem: str | None = None,
    harness: Harness | None = None,
    bodies: BodyMemory | None = None,
) -> AsyncIterator[Tools]:
    async with open_tools(
        egress or EgressRules(),
        resolver=resolver or TableResolver(names or {}),
        extra_ca_pem=extra_ca_pem,
        harness=harness,
        bodies=bodies,
    ) as network:
        yield network


@contextlib.asynccontextmanager
async def a_context(
    *, timeout_s: float = LONG_S, silences_s: Mapping[str, float] | None = None, **network: Any
) -> AsyncIterator[RunContext]:
    async with a_network(**network) as tools:
        yield RunContext(network=tools, pings=PingTable(silences_s or {}), timeout_s=timeout_s)
