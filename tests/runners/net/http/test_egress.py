"""The egress rules hold on what is written and on what it resolves to."""

from collections.abc import Sequence

import pytest

from contract.requests import IpFamily
from contract.result import Failure, FailureKind
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from tests.builders.patience import LONG_S
from tests.builders.specs import an_http_request
from tests.servers.http_origin import http_origin, reply


async def outcome(
    url: str,
    *,
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    family: IpFamily = IpFamily.IPV4,
) -> Failure | None:
    async with HttpEngine(EgressRules.parse(allow, deny)) as engine:
        request = an_http_request(url, ip_family=family)
        return (await engine.exchange(request, timeout_s=LONG_S)).failure


async def test_a_denied_address_is_never_connected_to() -> None:
    async with http_origin(reply()) as origin:
        failure = await outcome(origin.url(), deny=["127.0.0.0/8"])
        assert failure is not None
        assert failure.kind is FailureKind.EGRESS
        assert failure.detail["code"] == "EGRESS_REFUSED"
        assert origin.connections == 0


async def test_a_name_is_judged_by_what_it_resolves_to() -> None:
    async with http_origin(reply()) as origin:
        failure = await outcome(f"http://localhost:{origin.port}/", deny=["127.0.0.0/8"])
        assert failure is not None
        assert failure.kind is FailureKind.EGRESS
        assert "localhost (127.0.0.1) is refused" in failure.message
        assert origin.connections == 0


async def test_a_denied_name_is_not_even_looked_up() -> None:
    failure = await outcome("http://nowhere.invalid/", deny=["*.invalid"])
    assert failure is not None
    assert failure.kind is FailureKind.EGRESS


async def test_a_denied_name_is_denied_percent_encoded_too() -> None:
    failure = await outcome("http://%6e%4Fwhere.invalid/", deny=["nowhere.invalid"])
    assert failure is not None
    assert failure.kind is FailureKind.EGRESS


async def test_an_allowed_name_is_reached() -> None:
    async with http_origin(reply()) as origin:
        url = f"http://localhost:{origin.port}/"
        assert await outcome(url, allow=["localhost"]) is None
        assert await outcome(url, allow=["127.0.0.0/8"]) is None
        refused = await outcome(url, allow=["10.0.0.0/8"])
    assert refused is not None
    assert refused.kind is FailureKind.EGRESS


@pytest.mark.parametrize("host", ["169.254.169.254", "2852039166", "0xa9fea9fe", "169.254.43518"])
async def test_metadata_addresses_are_refused_in_every_spelling(host: str) -> None:
    failure = await outcome(f"http://{host}/latest/meta-data")
    assert failure is not None
    assert failure.kind is FailureKind.EGRESS


async def test_a_mapped_metadata_address_is_refused() -> None:
    failure = await outcome("http://[::ffff:169.254.169.254]/", family=IpFamily.IPV6)
    assert failure is not None
    assert failure.kind is FailureKind.EGRESS
