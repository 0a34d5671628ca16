"""Assertions on the connection: days until the certificate expires, address, TLS version."""

import pytest
import trustme

from contract.assertions import Comparison, Source
from contract.checks import CheckSpec, CheckType, TcpRequest
from contract.result import Outcome, Status
from runners.judging.judge import judge
from runners.registry import RUNNERS
from tests.builders.context import a_context
from tests.builders.specs import a_tcp_spec, a_url_spec, an_api_spec, an_assertion
from tests.servers import http_certificates as certificates
from tests.servers.http_origin import Origin, http_origin, reply

ASSERTIONS = (
    an_assertion(Source.DAYS_TO_EXPIRY, Comparison.GREATER_THAN, "1"),
    an_assertion(Source.REMOTE_ADDRESS, Comparison.EQUALS, "127.0.0.1"),
    an_assertion(Source.TLS_VERSION, Comparison.EQUALS, "TLSv1.3"),
    an_assertion(Source.TLS_VERSION, Comparison.GREATER_THAN, "1.1", property="TLSv(.+)"),
)


def spec_of(kind: CheckType, origin: Origin, *, tls: bool) -> CheckSpec:
    if kind is CheckType.TCP:
        request = TcpRequest(hostname="127.0.0.1", port=origin.port, tls=tls)
        return a_tcp_spec(request=request, assertions=ASSERTIONS)
    build = a_url_spec if kind is CheckType.URL else an_api_spec
    return build(origin.url(), assertions=ASSERTIONS)


async def outcome(spec: CheckSpec, ca: trustme.CA) -> Outcome:
    runner = next(one for one in RUNNERS if one.spec is type(spec))
    async with a_context(extra_ca_pem=certificates.pem_of(ca).decode()) as ctx:
        return judge(spec, await runner.observe(spec, ctx))


@pytest.mark.parametrize("kind", [CheckType.URL, CheckType.API, CheckType.TCP])
async def test_facts_of_a_connection_can_be_asserted_on(kind: CheckType) -> None:
    ca = trustme.CA()
    async with http_origin(reply(), tls=certificates.good(ca)) as origin:
        result = await outcome(spec_of(kind, origin, tls=True), ca)
    assert [one.error for one in result.assertions] == [None] * len(ASSERTIONS)
    assert result.status is Status.PASSED


@pytest.mark.parametrize("kind", [CheckType.URL, CheckType.API, CheckType.TCP])
async def test_without_tls_nothing_that_is_asserted_of_it_holds(kind: CheckType) -> None:
    async with http_origin(reply()) as origin:
        result = await outcome(spec_of(kind, origin, tls=False), trustme.CA())
    assert [one.error is None for one in result.assertions] == [False, True, False, False]
    assert "this run recorded no such value" in (result.assertions[0].error or "")
