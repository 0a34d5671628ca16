"""When a run has a gate, and what it says of it."""

from pathlib import Path

import msgspec
import pytest

from contract.job import ClientCertificate
from runners.kit.egress import EgressRules
from runners.kit.run_gate import proxies, proxy_of, run_gate
from runners.kit.runner import RunContext
from runners.kit.trust import Trust
from tests.builders.context import a_context

ALLOWED = EgressRules.parse(["127.0.0.1"], [])
MINE = (ClientCertificate(host="*", cert="", key=""),)


def showing(ctx: RunContext) -> RunContext:
    return msgspec.structs.replace(ctx, client_certificates=MINE)


async def test_without_rules_and_certificates_a_browser_connects_by_itself(tmp_path: Path) -> None:
    async with (
        a_context() as ctx,
        run_gate(ctx, Trust(tmp_path, "").roots(presents=False), tmp_path) as gate,
    ):
        assert gate is None
    told = proxies(None, "http://user:p%40ss@[::1]:3128")
    through = {"server": "http://[::1]:3128", "username": "user", "password": "p@ss"}
    assert told == {"gate": None, "proxy": through, "certificatesProxy": through}


async def test_only_the_operators_rules_make_it_binding(tmp_path: Path) -> None:
    trust = Trust(tmp_path, "")
    async with (
        a_context(egress=ALLOWED) as ctx,
        run_gate(ctx, trust.roots(presents=False), tmp_path) as gate,
    ):
        assert gate is not None
        assert proxies(gate, None)["gate"] == gate.url
    async with (
        a_context() as plain,
        run_gate(showing(plain), trust.roots(presents=True), tmp_path) as gate,
    ):
        assert gate is not None
        told = proxies(gate, None)
        assert (told["gate"], told["proxy"]) == (None, {"server": gate.url})


@pytest.mark.parametrize(
    ("proxy_url", "is_left_aside"),
    [(None, False), ("http://127.0.0.1:3128", False), ("socks5://127.0.0.1:1080", True)],
)
async def test_a_proxy_that_is_left_aside_is_told(
    tmp_path: Path, proxy_url: str | None, *, is_left_aside: bool
) -> None:
    roots = Trust(tmp_path, "").roots(presents=False)
    async with a_context(egress=ALLOWED) as ctx:
        run = msgspec.structs.replace(ctx, proxy_url=proxy_url)
        async with run_gate(run, roots, tmp_path) as gate:
            assert gate is not None
            assert bool(gate.notes) is is_left_aside


def test_a_proxy_without_scheme_is_one_of_http() -> None:
    assert proxy_of("proxy.test:3128") == {"server": "http://proxy.test:3128"}
