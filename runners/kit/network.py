"""Opens the process's tools for looking at targets, and closes them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from runners.kit.aside import Aside
from runners.kit.dns.resolve import Resolver
from runners.kit.egress.rules import EgressRules
from runners.kit.harness import Harness
from runners.kit.http.engine import HttpEngine
from runners.kit.icmp.pinger import Pinger
from runners.kit.readiness import Readiness
from runners.kit.runner import Network
from runners.kit.tls.channel import TlsContexts


@asynccontextmanager
async def open_network(
    egress: EgressRules,
    *,
    resolver: Resolver,
    extra_ca_pem: str | None = None,
    harness: Harness | None = None,
) -> AsyncIterator[Network]:
    """The tools, for as long as the block lasts; resolver and harness stay the caller's.

    HTTP exchanges resolve inside libcurl, by the system; the resolver is for the other runners.
    """
    pinger, readiness, aside = Pinger(), Readiness(), Aside()
    further_roots = None if extra_ca_pem is None else extra_ca_pem.encode()
    async with HttpEngine(egress, extra_ca_pem=further_roots) as http:
        try:
            yield Network(
                http=http,
                pinger=pinger,
                resolver=resolver,
                egress=egress,
                tls=TlsContexts(extra_ca_pem=extra_ca_pem),
                readiness=readiness,
                aside=aside,
                harness=harness,
            )
        finally:
            pinger.close()
            readiness.close()
            aside.close()
