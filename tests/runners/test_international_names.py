"""Names that are not ASCII lead every check type to the same host, as they lead browsers."""

from collections.abc import Awaitable, Callable

import pytest

from contract.checks import DnsRequest, IcmpRequest, TcpRequest
from contract.result import DnsEvidence, FailureKind
from runners.api import ApiRunner
from runners.dns import DnsRunner
from runners.icmp import IcmpRunner
from runners.net.dns.name_servers import HostFiles, NameServer, ResolvConf
from runners.net.dns.resolve import DnsServerResolver
from runners.net.egress.rules import EgressRules
from runners.runner import Observation, RunContext
from runners.tcp import TcpRunner
from runners.url import UrlRunner
from tests.builders.context import a_context
from tests.builders.specs import a_dns_spec, a_tcp_spec, a_url_spec, an_api_spec, an_icmp_spec
from tests.servers.dns import dns_server
from tests.servers.tcp import closes, tcp_server

HOST = "faß.example"
ENCODED = "xn--fa-hia.example"


async def by_url(ctx: RunContext) -> Observation:
    return await UrlRunner().observe(a_url_spec(f"http://{HOST}/"), ctx)


async def by_api(ctx: RunContext) -> Observation:
    return await ApiRunner().observe(an_api_spec(f"http://{HOST}/"), ctx)


async def by_tcp(ctx: RunContext) -> Observation:
    return await TcpRunner().observe(a_tcp_spec(request=TcpRequest(hostname=HOST, port=9)), ctx)


async def by_icmp(ctx: RunContext) -> Observation:
    return await IcmpRunner().observe(an_icmp_spec(request=IcmpRequest(hostname=HOST)), ctx)


async def by_dns(ctx: RunContext) -> Observation:
    request = DnsRequest(query="x.test", name_server=HOST, port=53)
    return await DnsRunner().observe(a_dns_spec(request=request), ctx)


@pytest.mark.parametrize("look", [by_url, by_api, by_tcp, by_icmp, by_dns])
async def test_every_type_asks_the_egress_rules_for_the_same_name(
    look: Callable[[RunContext], Awaitable[Observation]],
) -> None:
    async with a_context(egress=EgressRules.parse(allow=(), deny=(ENCODED,))) as ctx:
        seen = await look(ctx)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.EGRESS


class OneServer(HostFiles):
    """Host files that name one DNS server, on a free port."""

    def __init__(self, port: int) -> None:
        self._conf = ResolvConf(servers=(NameServer("127.0.0.1", port),))

    def addresses(self, hostname: str, family: object) -> tuple[str, ...]:
        return ()

    def resolv_conf(self) -> ResolvConf:
        return self._conf


async def test_a_name_is_looked_up_in_its_encoded_form() -> None:
    zone = {(f"{ENCODED}.", "A"): ("127.0.0.1",)}
    async with (
        dns_server(zone) as server,
        tcp_server(closes) as port,
        a_context(resolver=DnsServerResolver(OneServer(server.port))) as ctx,
    ):
        request = TcpRequest(hostname=HOST, port=port)
        seen = await TcpRunner().observe(a_tcp_spec(request=request), ctx)
    assert seen.failure is None


async def test_a_query_is_sent_in_its_encoded_form() -> None:
    async with dns_server({(f"{ENCODED}.", "A"): ("10.0.0.1",)}) as server, a_context() as ctx:
        request = DnsRequest(query=HOST, name_server="127.0.0.1", port=server.port)
        seen = await DnsRunner().observe(a_dns_spec(request=request), ctx)
    assert isinstance(seen.evidence, DnsEvidence)
    assert seen.evidence.response_code == "NOERROR"
