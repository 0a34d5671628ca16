"""The certificate of the host that a browser check names."""

import ssl
from typing import Any

import pytest
import trustme

from contract.result import Outcome, Status
from runners.net.egress.rules import EgressRules
from tests.builders.browser_checks import evidence, looked
from tests.servers.tcp import closes, keeps_silent, refusing_port, tcp_server

NAME = "shop.test"
SCRIPT = "console.log('ran')"


async def watch(
    monkeypatch: pytest.MonkeyPatch, port: int, script: str = SCRIPT, **ctx: Any
) -> Outcome:
    monkeypatch.setattr("runners.browser.HTTPS_PORT", port)
    names = {"names": {NAME: ("127.0.0.1",)}, **ctx}
    return await looked(script, ctx=names, ssl_check_domain=NAME)


def messages(outcome: Outcome) -> list[str]:
    return [line.message for line in outcome.log]


async def test_a_run_shows_the_certificate_of_the_host_even_if_nobody_trusts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert(NAME).configure_cert(server)
    async with tcp_server(closes, tls=server) as port:
        outcome = await watch(monkeypatch, port)
    seen = evidence(outcome)
    assert outcome.status is Status.PASSED
    assert seen.ssl_check_domain == NAME
    assert seen.tls is not None
    assert NAME in seen.tls.chain[0].names
    assert (seen.tls.days_to_expiry or 0) > 0
    assert not seen.tls.verified
    assert messages(outcome) == ["ran"]


async def test_a_host_that_shows_none_fails_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing_port() as port:
        outcome = await watch(monkeypatch, port)
    assert outcome.status is Status.PASSED
    assert evidence(outcome).tls is None
    [why, ran] = messages(outcome)
    assert why.startswith(f"The certificate of {NAME} was not seen. ")
    assert "refused" in why
    assert ran == "ran"


async def test_a_host_that_says_nothing_holds_no_run_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.browser._LOOK_S", 0.2)
    async with tcp_server(keeps_silent) as port:
        outcome = await watch(monkeypatch, port)
    assert outcome.status is Status.PASSED
    assert messages(outcome)[0].endswith("was not seen. It did not come within 0.2 s.")


async def test_a_host_that_the_agent_may_not_reach_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached: list[object] = []

    async def serve(*connection: object) -> None:
        reached.extend(connection)

    rules = EgressRules.parse([], ["127.0.0.0/8"])
    async with tcp_server(serve) as port:
        outcome = await watch(monkeypatch, port, egress=rules)
    assert outcome.status is Status.PASSED
    assert evidence(outcome).tls is None
    assert reached == []


async def test_without_a_host_nothing_is_looked_at() -> None:
    outcome = await looked(SCRIPT)
    seen = evidence(outcome)
    assert (seen.ssl_check_domain, seen.tls) == (None, None)
