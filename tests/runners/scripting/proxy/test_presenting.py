"""Client certificates in browsers and Playwright's requests: shown to the right hosts, by us."""

import io
import json
import ssl
import zipfile
from pathlib import Path
from typing import Any

import pytest
import trustme

from contract.checks import BrowserSpec, MultiStepSpec
from contract.job import ClientCertificate
from contract.result import Outcome
from runners.browser import BrowserRunner
from runners.judging.judge import judge
from runners.multi_step import MultiStepRunner
from runners.net.egress.rules import EgressRules
from runners.runner import RunContext
from tests.builders.scripts import a_scripted_context
from tests.servers.http_certificates import expired, good, pem_of, wants_client
from tests.servers.http_origin import http_origin, reply
from tests.servers.recording_proxy import RecordingProxy
from tests.servers.secure_shop import TITLE, secure_shop

PATIENT: dict[str, object] = {"timeout": 0, "expect": {"timeout": 50_000}}


@pytest.fixture
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def roots(ca: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "roots.pem"
    path.write_bytes(pem_of(ca))
    return path


def shown_to(host: str, issuer: trustme.CA, **more: Any) -> ClientCertificate:
    leaf = issuer.issue_cert("agent@shop.test")
    cert = b"".join(one.bytes() for one in leaf.cert_chain_pems).decode()
    return ClientCertificate(
        host=host, cert=cert, key=leaf.private_key_pem.bytes().decode(), **more
    )


def a_script(body: str) -> str:
    return (
        "import { test, expect } from '@playwright/test';\n"
        f"test('shop', async ({{ page, request, browser, playwright }}) => {{\n{body}\n}});\n"
    )


def visiting(url: str) -> str:
    return a_script(
        f"await page.goto('{url}', {{ timeout: 0 }});\n"
        f"await expect(page).toHaveTitle('{TITLE}');\n"
        f"expect(await (await request.get('{url}data')).text()).toBe('data');\n"
        f"expect(await (await page.request.get('{url}data')).text()).toBe('data');"
    )


async def outcome_of(ctx: RunContext, script: str) -> Outcome:
    spec = BrowserSpec(script=script, playwright_config=PATIENT)
    return judge(spec, await BrowserRunner().observe(spec, ctx))


def locked(ca: trustme.CA) -> ssl.SSLContext:
    """A server that wants a certificate of the same authority."""
    return wants_client(good(ca), ca)


async def test_pages_sockets_and_requests_show_the_certificate(ca: trustme.CA, roots: Path) -> None:
    mine = (shown_to("*.shop.test", ca), shown_to("127.*", ca))
    async with (
        secure_shop(locked(ca)) as shop,
        a_scripted_context(extra_roots=roots, client_certificates=mine) as ctx,
    ):
        outcome = await outcome_of(ctx, visiting(shop.url()))
    assert outcome.failure is None


async def test_other_hosts_are_shown_none(ca: trustme.CA, roots: Path) -> None:
    mine = (shown_to("*.shop.test", ca),)
    async with (
        secure_shop(locked(ca)) as shop,
        a_scripted_context(extra_roots=roots, client_certificates=mine) as ctx,
    ):
        outcome = await outcome_of(ctx, visiting(shop.url()))
    assert outcome.failure is not None
    assert shop.asked == []


async def test_the_exact_host_wins_and_then_the_newest(ca: trustme.CA, roots: Path) -> None:
    stranger = trustme.CA()
    mine = (shown_to("127.*", stranger), shown_to("*", stranger), shown_to("127.0.0.1", ca))
    async with (
        secure_shop(locked(ca)) as shop,
        a_scripted_context(extra_roots=roots, client_certificates=mine) as ctx,
    ):
        outcome = await outcome_of(ctx, visiting(shop.url()))
    assert outcome.failure is None


async def test_the_root_of_a_certificate_counts_for_its_hosts_alone(ca: trustme.CA) -> None:
    mine = (shown_to("127.0.0.1", ca, ca=pem_of(ca).decode()),)
    async with (
        secure_shop(locked(ca)) as shop,
        a_scripted_context(client_certificates=mine) as ctx,
    ):
        right = await outcome_of(ctx, visiting(shop.url()))
    async with (
        secure_shop(good(ca)) as shop,
        a_scripted_context(client_certificates=mine, names={"localhost": ("127.0.0.1",)}) as ctx,
    ):
        wrong = await outcome_of(ctx, visiting(shop.url().replace("127.0.0.1", "localhost")))
    assert right.failure is None
    assert wrong.failure is not None
    assert "ERR_CERT_AUTHORITY_INVALID" in wrong.failure.message


async def test_a_servers_bad_certificate_fails_the_page_and_is_named(
    ca: trustme.CA, roots: Path
) -> None:
    mine = (shown_to("*", ca),)
    async with (
        secure_shop(expired(ca)) as shop,
        a_scripted_context(extra_roots=roots, client_certificates=mine) as ctx,
    ):
        outcome = await outcome_of(ctx, visiting(shop.url()))
    assert outcome.failure is not None
    assert shop.asked == []
    named = f"The certificate of 127.0.0.1:{shop.port} cannot be trusted: "
    assert [line.message for line in outcome.log if line.message.startswith(named)]


async def test_a_certificate_that_the_server_refuses_is_named(ca: trustme.CA, roots: Path) -> None:
    mine = (shown_to("*", trustme.CA()),)
    async with (
        secure_shop(locked(ca)) as shop,
        a_scripted_context(extra_roots=roots, client_certificates=mine) as ctx,
    ):
        outcome = await outcome_of(ctx, visiting(shop.url()))
    assert outcome.failure is not None
    said = [line.message for line in outcome.log]
    named = f"127.0.0.1:{shop.port} was shown a certificate and ended the connection: "
    assert [line for line in said if line.startswith(named)]


async def test_a_certificate_that_cannot_be_read_is_named(ca: trustme.CA, roots: Path) -> None:
    mine = (ClientCertificate(host="*", cert="no pem", key="no pem"),)
    async with (
        secure_shop(locked(ca)) as shop,
        a_scripted_context(extra_roots=roots, client_certificates=mine) as ctx,
    ):
        outcome = await outcome_of(ctx, visiting(shop.url()))
    assert outcome.failure is not None
    named = "The client certificate for 127.0.0.1 cannot be used: "
    assert [line.message for line in outcome.log if line.message.startswith(named)]


async def test_plain_http_on_a_host_with_a_certificate_goes_on(ca: trustme.CA) -> None:
    mine = (shown_to("*", ca),)
    async with (
        http_origin(reply(b"plain")) as origin,
        a_scripted_context(client_certificates=mine) as ctx,
    ):
        body = (
            f"await page.goto('{origin.url()}', {{ timeout: 0 }});\n"
            f"expect(await (await request.get('{origin.url()}')).text()).toBe('plain');"
        )
        outcome = await outcome_of(ctx, a_script(body))
    assert outcome.failure is None


async def test_a_scripts_own_certificate_wins(ca: trustme.CA, roots: Path) -> None:
    theirs, leaf = trustme.CA(), ca.issue_cert("own@shop.test")
    cert = b"".join(one.bytes() for one in leaf.cert_chain_pems).decode()
    key = leaf.private_key_pem.bytes().decode()
    async with (
        secure_shop(locked(ca)) as shop,
        a_scripted_context(extra_roots=roots, client_certificates=(shown_to("*", theirs),)) as ctx,
    ):
        own = json.dumps({"origin": shop.url().rstrip("/"), "cert": cert, "key": key})
        body = (
            f"const own = {own};\n"
            "const clientCertificates = [\n"
            "  { ...own, cert: Buffer.from(own.cert), key: Buffer.from(own.key) }];\n"
            "const context = await browser.newContext({ clientCertificates });\n"
            "const mine = await context.newPage();\n"
            f"await mine.goto('{shop.url()}', {{ timeout: 0 }});\n"
            f"await expect(mine).toHaveTitle('{TITLE}');\n"
            "const kept = await playwright.chromium.launchPersistentContext('', {\n"
            "  clientCertificates });\n"
            f"await kept.pages()[0].goto('{shop.url()}', {{ timeout: 0 }});\n"
            f"await expect(kept.pages()[0]).toHaveTitle('{TITLE}');\n"
            "await kept.close();\n"
            "const asking = await playwright.request.newContext({ clientCertificates });\n"
            f"expect(await (await asking.get('{shop.url()}data')).text()).toBe('data');"
        )
        outcome = await outcome_of(ctx, a_script(body))
    assert outcome.failure is None


async def test_multi_step_checks_show_the_certificate(ca: trustme.CA, roots: Path) -> None:
    mine = (shown_to("127.0.0.1", ca),)
    async with (
        secure_shop(locked(ca)) as shop,
        a_scripted_context(extra_roots=roots, client_certificates=mine) as ctx,
    ):
        script = (
            "import { test } from '@playwright/test';\n"
            "test('shop', async ({ request }) => {\n"
            f"  await request.get('{shop.url()}data', {{ failOnStatusCode: true }});\n"
            "});"
        )
        spec = MultiStepSpec(script=script)
        outcome = judge(spec, await MultiStepRunner().observe(spec, ctx))
    assert outcome.failure is None


async def test_the_key_is_nowhere_that_the_script_or_a_reader_could_find_it(
    ca: trustme.CA, roots: Path
) -> None:
    mine = shown_to("127.0.0.1", ca)
    secret = mine.key.splitlines()[1]
    async with (
        secure_shop(locked(ca)) as shop,
        a_scripted_context(extra_roots=roots, client_certificates=(mine,), keeps_files=True) as ctx,
    ):
        body = (
            f"await page.goto('{shop.url()}', {{ timeout: 0 }});\n"
            "console.log(JSON.stringify(process.env));\n"
            "require('fs').readdirSync(process.env.HOME, { recursive: true })\n"
            "  .forEach((name) => console.log(name));"
        )
        outcome = await outcome_of(ctx, a_script(body))
        trace = (ctx.workspace.folder / "trace.zip").read_bytes()
    assert outcome.failure is None
    assert secret not in "".join(line.message for line in outcome.log)
    with zipfile.ZipFile(io.BytesIO(trace)) as members:
        assert not [name for name in members.namelist() if secret.encode() in members.read(name)]


async def test_egress_rules_hold_beside_certificates(ca: trustme.CA, roots: Path) -> None:
    mine = (shown_to("*", ca),)
    async with (
        secure_shop(locked(ca)) as shop,
        a_scripted_context(
            extra_roots=roots,
            client_certificates=mine,
            egress=EgressRules.parse(["127.0.0.1"], []),
        ) as ctx,
    ):
        right = await outcome_of(ctx, visiting(shop.url()))
    async with a_scripted_context(
        client_certificates=mine, egress=EgressRules.parse(["127.0.0.1"], [])
    ) as ctx:
        wrong = await outcome_of(ctx, visiting("https://127.0.0.2/"))
    assert right.failure is None
    assert wrong.failure is not None
    assert "127.0.0.2 matches no rule of EGRESS_ALLOW" in wrong.failure.message


async def test_certificates_are_shown_past_the_locations_proxy(ca: trustme.CA, roots: Path) -> None:
    mine = (shown_to("127.0.0.1", ca),)
    async with (
        secure_shop(locked(ca)) as shop,
        RecordingProxy() as proxy,
        a_scripted_context(extra_roots=roots, client_certificates=mine, proxy_url=proxy.url) as ctx,
    ):
        outcome = await outcome_of(ctx, visiting(shop.url()))
    assert proxy.seen == []
    assert outcome.failure is None
