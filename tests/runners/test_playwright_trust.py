"""Suites trust what their location trusts, show its certificates, and keep to its rules."""

from pathlib import Path

import msgspec
import pytest
import trustme

from contract.job import Variable
from runners.net.egress.rules import EgressRules
from runners.runner import Observation
from tests.builders.suites import NEWEST, a_bundle, seen
from tests.runners.scripting.proxy.test_presenting import locked, shown_to
from tests.servers.http_certificates import expired, good, pem_of
from tests.servers.http_origin import http_origin, reply
from tests.servers.recording_proxy import RecordingProxy
from tests.servers.secure_shop import secure_shop

OLDEST = "1.40.1"


def said(observation: Observation) -> list[str]:
    return [line.message for line in observation.log]


@pytest.fixture
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def roots(ca: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "roots.pem"
    path.write_bytes(pem_of(ca))
    return path


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
async def test_suites_trust_the_further_roots_and_show_certificates(
    tmp_path: Path, ca: trustme.CA, roots: Path, version: str
) -> None:
    spec = a_bundle(
        tmp_path,
        "secure",
        lock=f"versions/{version}",
        devDependencies={"@playwright/test": version},
    )
    mine = (shown_to("127.*", ca),)
    async with secure_shop(locked(ca)) as shop:
        ran = await seen(
            tmp_path,
            spec,
            extra_roots=roots,
            client_certificates=mine,
            variables=(Variable(key="SHOP_URL", value=shop.url()),),
        )
    assert ran.failure is None, said(ran)


async def test_a_bad_certificate_fails_a_suite_all_the_same(
    tmp_path: Path, ca: trustme.CA, roots: Path
) -> None:
    spec = a_bundle(tmp_path, "secure")
    async with secure_shop(expired(ca)) as shop:
        url = Variable(key="SHOP_URL", value=shop.url())
        ran = await seen(tmp_path, spec, extra_roots=roots, variables=(url,))
    assert ran.failure is not None
    assert shop.asked == []


async def test_without_the_roots_a_suite_fails(tmp_path: Path, ca: trustme.CA) -> None:
    spec = a_bundle(tmp_path, "secure")
    async with secure_shop(good(ca)) as shop:
        url = Variable(key="SHOP_URL", value=shop.url())
        ran = await seen(tmp_path, spec, variables=(url,))
    assert ran.failure is not None
    assert shop.asked == []


@pytest.mark.parametrize("rules", [EgressRules(), EgressRules.parse(["127.0.0.1"], [])])
async def test_suites_do_not_take_the_locations_proxy(tmp_path: Path, rules: EgressRules) -> None:
    spec = a_bundle(tmp_path, "proxied")
    async with http_origin(reply(content_type="text/html")) as origin, RecordingProxy() as proxy:
        url = (Variable(key="SHOP_URL", value=origin.url()),)
        ran = await seen(tmp_path, spec, proxy_url=proxy.url, variables=url, egress=rules)
    assert ran.failure is None, said(ran)
    assert proxy.seen == []


async def test_a_suites_own_web_server_is_reached_with_egress_rules(tmp_path: Path) -> None:
    rules = EgressRules.parse(["127.0.0.1"], [])
    ran = await seen(tmp_path, a_bundle(tmp_path, "web_server"), egress=rules)
    assert ran.failure is None, said(ran)


async def test_a_suites_own_proxy_wins_unless_there_are_egress_rules(tmp_path: Path) -> None:
    pages = "npx playwright test --grep page"
    spec = msgspec.structs.replace(a_bundle(tmp_path, "proxied"), test_command=pages)
    rules = EgressRules.parse(["127.0.0.1"], [])
    async with http_origin(reply(content_type="text/html")) as origin, RecordingProxy() as own:
        variables = (
            Variable(key="SHOP_URL", value=origin.url()),
            Variable(key="OWN_PROXY", value=own.url),
        )
        free = await seen(tmp_path, spec, variables=variables)
        used = len(own.seen)
        bound = await seen(tmp_path, spec, variables=variables, egress=rules)
    assert len(own.seen) == used > 0
    assert (free.failure, bound.failure) == (None, None), said(bound)


async def test_egress_rules_hold_for_suites_and_are_named(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "proxied")
    rules = EgressRules.parse(["127.0.0.1"], [])
    url = Variable(key="SHOP_URL", value="http://127.0.0.2:9/")
    ran = await seen(tmp_path, spec, variables=(url,), egress=rules)
    assert ran.failure is not None
    assert "127.0.0.2 matches no rule of EGRESS_ALLOW." in said(ran)
