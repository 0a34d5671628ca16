"""Further roots: Chromium and Playwright's `request` trust them, and nothing else."""

import resource
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from contract.checks import BrowserSpec, MultiStepSpec
from contract.result import Outcome
from runners.browser import BrowserRunner
from runners.judging.judge import judge
from runners.multi_step import MultiStepRunner
from runners.scripting.trust import roots as trust
from runners.scripting.trust.roots import Roots, Trust, build_database
from tests.builders.scripts import a_scripted_context, runtimes_here
from tests.servers.http_certificates import (
    expired,
    good,
    not_yet_valid,
    pem_of,
    self_signed,
    wrong_host,
)
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


@contextmanager
def no_large_files() -> Iterator[None]:
    """As on a disk that has no room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def visiting(url: str) -> str:
    return (
        "import { test, expect } from '@playwright/test';\n"
        "test('shop', async ({ page, request }) => {\n"
        f"await page.goto('{url}', {{ timeout: 0 }});\n"
        f"await expect(page).toHaveTitle('{TITLE}');\n"
        f"expect(await (await request.get('{url}data')).text()).toBe('data');\n"
        "});\n"
    )


async def visited(url: str, roots: Path | None, **changes: Any) -> Outcome:
    spec = BrowserSpec(script=visiting(url), playwright_config=PATIENT, **changes)
    async with a_scripted_context(extra_roots=roots) as ctx:
        return judge(spec, await BrowserRunner().observe(spec, ctx))


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_pages_fetches_sockets_and_requests_trust_the_further_roots(
    ca: trustme.CA, roots: Path, runtime_id: str
) -> None:
    async with secure_shop(good(ca)) as shop:
        outcome = await visited(shop.url(), roots, runtime_id=runtime_id)
    assert outcome.failure is None
    assert not [line.message for line in outcome.log if "trust" in line.message]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (expired, "ERR_CERT_DATE_INVALID"),
        (not_yet_valid, "ERR_CERT_DATE_INVALID"),
        (wrong_host, "ERR_CERT_COMMON_NAME_INVALID"),
        (lambda _: self_signed(), "ERR_CERT_AUTHORITY_INVALID"),
        (lambda _: good(trustme.CA()), "ERR_CERT_AUTHORITY_INVALID"),
    ],
)
async def test_a_bad_certificate_fails_the_page_all_the_same(
    ca: trustme.CA, roots: Path, bad: Callable[[trustme.CA], ssl.SSLContext], reason: str
) -> None:
    async with secure_shop(bad(ca)) as shop:
        outcome = await visited(shop.url(), roots)
    assert outcome.failure is not None
    assert reason in outcome.failure.message
    assert shop.asked == []


async def test_without_further_roots_nothing_is_trusted_that_was_not(ca: trustme.CA) -> None:
    async with secure_shop(good(ca)) as shop:
        outcome = await visited(shop.url(), None)
    assert outcome.failure is not None
    assert "ERR_CERT_AUTHORITY_INVALID" in outcome.failure.message


async def test_a_servers_own_certificate_is_trusted_as_curl_does(tmp_path: Path) -> None:
    ca, roots = trustme.CA(), tmp_path / "server.pem"
    leaf = ca.issue_cert("127.0.0.1")
    roots.write_bytes(leaf.cert_chain_pems[0].bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)
    script = visiting("URL").partition("expect(await (await")[0] + "});\n"
    async with secure_shop(context) as shop, a_scripted_context(extra_roots=roots) as ctx:
        spec = BrowserSpec(script=script.replace("URL", shop.url()), playwright_config=PATIENT)
        outcome = judge(spec, await BrowserRunner().observe(spec, ctx))
    assert outcome.failure is None


async def test_multi_step_checks_trust_the_further_roots(ca: trustme.CA, roots: Path) -> None:
    async with secure_shop(good(ca)) as shop, a_scripted_context(extra_roots=roots) as ctx:
        spec = MultiStepSpec(
            script=(
                "import { test, expect } from '@playwright/test';\n"
                "test('shop', async ({ request }) => {\n"
                f"await expect(await request.get('{shop.url()}data')).toBeOK();\n"
                "});\n"
            )
        )
        outcome = judge(spec, await MultiStepRunner().observe(spec, ctx))
    assert outcome.failure is None


def test_each_run_has_a_database_of_its_own(tmp_path: Path) -> None:
    roots = Roots(tmp_path, pem_of(trustme.CA()).decode())
    homes = [tmp_path / "one", tmp_path / "other"]
    assert [roots.install_in(home) for home in homes] == [None, None]
    assert (homes[0] / ".pki/nssdb/cert9.db").read_bytes() == (
        homes[1] / ".pki/nssdb/cert9.db"
    ).read_bytes()


def test_without_further_roots_a_home_stays_empty(tmp_path: Path) -> None:
    roots = Roots(tmp_path, "")
    assert roots.install_in(tmp_path / "home") is None
    assert roots.environment == {}
    assert not (tmp_path / "home").exists()


def test_roots_that_chromium_cannot_be_given_are_told(tmp_path: Path) -> None:
    unreadable = "-----BEGIN CERTIFICATE-----\nTm8=\n-----END CERTIFICATE-----\n"
    told = build_database(unreadable, tmp_path)
    assert told == (
        "Chromium does not trust the further roots of this location: "
        "root 1 is not a certificate that NSS can read."
    )
    assert Roots(tmp_path, unreadable).install_in(tmp_path / "home") == told


def test_roots_that_could_not_be_written_are_tried_again_by_the_next_run(tmp_path: Path) -> None:
    roots = Roots(tmp_path, pem_of(trustme.CA()).decode())
    with no_large_files(), pytest.raises(OSError, match=r"cannot be created now: .*NSS error"):
        roots.install_in(tmp_path / "one")
    assert roots.install_in(tmp_path / "other") is None
    assert (tmp_path / "other/.pki/nssdb/cert9.db").exists()
    assert len(list(tmp_path.glob("nssdb-*"))) == 1


def test_a_database_of_roots_that_takes_too_long_is_our_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = Roots(tmp_path, pem_of(trustme.CA()).decode())
    monkeypatch.setattr(trust, "_BUILD_LIMIT_S", 0.0)
    with pytest.raises(TimeoutError, match="did not end"):
        roots.install_in(tmp_path / "one")
    monkeypatch.undo()
    assert roots.install_in(tmp_path / "other") is None


def test_where_shared_memory_takes_no_files_the_disk_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "SHARED_MEMORY", Path("/proc"))
    assert build_database(pem_of(trustme.CA()).decode(), tmp_path) is None
    assert "cert9.db" in [path.name for path in tmp_path.iterdir()]


def test_only_runs_that_show_certificates_trust_an_authority_of_ours(tmp_path: Path) -> None:
    both = Trust(tmp_path, "")
    presenting = both.roots(presents=True)
    assert presenting is both.roots(presents=True)
    assert presenting.file is not None
    assert presenting.authority is not None
    assert presenting.file.read_text() == presenting.authority.pem
    assert both.roots(presents=False).authority is None
    assert both.roots(presents=False).environment == {}
