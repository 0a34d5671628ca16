"""From a name to addresses that a check may reach."""

import pytest

from contract.requests import IpFamily
from contract.result import CheckFailed, FailureKind
from runners.net.egress.rules import EgressRules
from runners.tools import resolve_allowed
from tests.builders.context import a_network

NAMES = {
    "inner.test": ("10.0.0.1",),
    "rebound.test": ("10.0.0.1", "169.254.169.254"),
    "secret.test": ("10.0.0.2",),
}


async def reach(hostname: str, *, deny: tuple[str, ...] = ()) -> tuple[str, ...]:
    rules = EgressRules.parse(allow=(), deny=deny)
    async with a_network(egress=rules, names=NAMES) as network:
        return await resolve_allowed(hostname, IpFamily.IPV4, network)


async def refusal(hostname: str, *, deny: tuple[str, ...] = ()) -> CheckFailed:
    with pytest.raises(CheckFailed) as caught:
        await reach(hostname, deny=deny)
    assert caught.value.failure.kind is FailureKind.EGRESS
    assert caught.value.failure.detail["code"] == "EGRESS_REFUSED"
    return caught.value


async def test_allowed_addresses_are_passed_on() -> None:
    assert await reach("inner.test") == ("10.0.0.1",)
    assert await reach("10.0.0.7") == ("10.0.0.7",)


async def test_a_literal_of_the_other_family_is_told_with_the_field_to_set() -> None:
    with pytest.raises(CheckFailed) as caught:
        await reach("::1")
    assert caught.value.failure.kind is FailureKind.CONNECT
    assert str(caught.value) == (
        "::1 is an IPv6 address, and the check's ipFamily is IPv4; set ipFamily to IPv6."
    )


@pytest.mark.parametrize("text", ["http://inner.test", "inner.test:9110", "10.0.0.1:80", "a/b"])
async def test_more_than_a_host_is_not_looked_up(text: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        await reach(text)
    assert caught.value.failure.kind is FailureKind.DNS
    assert str(caught.value) == (
        f"{text} cannot be resolved: hostname must be a name or an address, "
        "without scheme, port and path."
    )


async def test_one_forbidden_address_refuses_the_name() -> None:
    failed = await refusal("rebound.test")
    assert "rebound.test (169.254.169.254)" in str(failed)


async def test_a_forbidden_name_is_not_even_looked_up() -> None:
    failed = await refusal("nowhere.secret.test", deny=("*.secret.test",))
    assert failed.failure.detail["address"] is None


async def test_a_forbidden_literal_is_refused() -> None:
    await refusal("169.254.169.254")
    await refusal("10.0.0.1", deny=("10.0.0.0/8",))
