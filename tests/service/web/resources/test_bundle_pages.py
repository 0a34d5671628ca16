"""Code bundles of Playwright suites, sent as files by whoever is signed in."""

import re
from io import BytesIO
from pathlib import Path
from random import Random

import aiohttp
import pytest
from playwright.async_api import Browser, Page

from service.accounts.model import Role
from service.web.cookies import SESSION_COOKIE
from tests.builders.check_bodies import check_body
from tests.builders.code_bundles import a_bundle, bundle_bytes, sha256_of, suite_body
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebAnswer, WebUser, sign_in

BODY = bundle_bytes(Random(2).randbytes(5000))
SHA = sha256_of(BODY)
NEW = "/checks/new/bundle"


async def a_suite(user: ApiUser, name: str = "Suite") -> str:
    """A stored suite; its id."""
    made = await user.post("/v1/checks/playwright", suite_body(await a_bundle(user), name=name))
    assert made.status == 201, made.body
    return str(made.body["id"])


async def send_file(
    web: WebUser, path: str, content: bytes, *, token: str | None = None
) -> WebAnswer:
    """Send a file as the form of a page does."""
    form = aiohttp.FormData(default_to_multipart=True)
    form.add_field("csrf", await web.token() if token is None else token)
    form.add_field(
        "file", BytesIO(content), filename="suite.tar.gz", content_type="application/gzip"
    )
    async with web.http.post(
        web.url + path,
        data=form,
        headers={"cookie": f"{SESSION_COOKIE}={web.session}"},
        allow_redirects=False,
    ) as answer:
        return WebAnswer(answer.status, await answer.text(), answer.headers)


async def is_kept(user: ApiUser, sha256: str = SHA) -> bool:
    return (await user.get(f"/v1/code-bundles/{sha256}")).status == 200


async def test_a_newcomer_makes_a_suite_from_a_file(
    alice: ApiUser, page: Page, tmp_path: Path
) -> None:
    file = tmp_path / "suite.tar.gz"
    file.write_bytes(BODY)
    await page.goto("/checks/new?kind=PLAYWRIGHT")
    await page.get_by_label("Name", exact=True).first.fill("Checkout")
    await page.get_by_label("Test command").fill("npx playwright test --grep=@smoke")
    await page.get_by_role("button", name="Upload a bundle").click()
    await page.get_by_role("button", name="Back to the form").click()
    await page.get_by_role("button", name="Upload a bundle").click()
    await page.get_by_label("File").set_input_files(file)
    await page.get_by_role("button", name="Upload", exact=True).click()
    await page.get_by_role("button", name="Create").click()
    await page.wait_for_url(re.compile(r"/checks/[0-9a-f-]{36}$"))

    (check,) = (await alice.get("/v1/checks")).body
    assert (check["name"], check["codeBundlePath"]) == ("Checkout", SHA)
    assert check["testCommand"] == "npx playwright test --grep=@smoke"


async def test_a_suite_runs_the_file_that_is_sent_for_it_and_nothing_else_changes(
    alice: ApiUser, web: WebUser
) -> None:
    check = await a_suite(alice)
    before = (await alice.get(f"/v1/checks/{check}")).body

    done = await send_file(web, f"/checks/{check}/bundle", BODY)

    assert (done.status, done.headers["location"]) == (303, f"/checks/{check}/bundle")
    after = (await alice.get(f"/v1/checks/{check}")).body
    assert after == {**before, "codeBundlePath": SHA, "updated_at": after["updated_at"]}
    shown = (await web.get(f"/checks/{check}/bundle")).text
    assert f"<dd>{SHA[:12]}</dd>" in shown
    assert "<dd>5.0 kB</dd>" in shown


async def test_a_suite_is_given_another_bundle_by_its_form(alice: ApiUser, web: WebUser) -> None:
    check = await a_suite(alice)
    other = await a_bundle(alice, b"other tests")

    text = (await web.get(f"/checks/{check}/edit")).text

    chosen = (await alice.get(f"/v1/checks/{check}")).body["codeBundlePath"]
    assert re.search(rf'value="{chosen}" (checked|selected)', text)
    assert re.search(rf'value="{other}"(?! checked| selected)', text)
    assert f"{other[:12]}, " in text


async def test_a_file_that_is_longer_than_a_form_may_be_is_taken(
    alice: ApiUser, web: WebUser
) -> None:
    large = b"\x1f\x8b" + bytes(3 * 1024 * 1024)

    assert (await send_file(web, NEW, large)).status == 303
    assert await is_kept(alice, sha256_of(large))


@pytest.mark.parametrize(
    ("content", "message"), [(b"plain text", "is not gzip"), (b"", "is not gzip")]
)
async def test_a_file_that_is_no_bundle_is_refused_at_its_field(
    alice: ApiUser, web: WebUser, content: bytes, message: str
) -> None:
    check = await a_suite(alice)

    refused = await send_file(web, f"/checks/{check}/bundle", content)

    assert refused.status == 422
    assert message in refused.text.partition('class="problem"')[2].partition("</span>")[0]
    assert not await is_kept(alice, sha256_of(content))


async def test_a_form_without_a_file_says_what_to_choose(web: WebUser) -> None:
    refused = await web.post(NEW, {})
    assert refused.status == 422
    assert "Choose the file of a bundle" in refused.text


async def test_a_file_above_the_limit_is_refused_and_nothing_of_it_stays(
    api: PublicApi, alice: ApiUser, web: WebUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.backend.bundles, "_limit_bytes", 4000)
    folder = api.backend.bundles.path(alice.secrets.account_id, SHA).parent

    refused = await send_file(web, NEW, BODY)

    assert refused.status == 422
    assert "too large; use at most 4000 bytes" in refused.text
    assert not await is_kept(alice)
    assert not folder.exists()


async def test_a_form_from_elsewhere_leaves_no_file(alice: ApiUser, web: WebUser) -> None:
    assert (await send_file(web, NEW, BODY, token="wrong")).status == 403
    assert not await is_kept(alice)


async def test_who_may_only_read_sees_the_bundle_and_sends_none(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_suite(alice)
    reader = await sign_in(api, (await api.colleague("Rita", role=Role.READ_ONLY)).secrets.api_key)

    shown = (await reader.get(f"/checks/{check}/bundle")).text
    assert "<dt>Bundle</dt>" in shown
    assert 'type="file"' not in shown
    assert (await send_file(reader, f"/checks/{check}/bundle", BODY)).status == 403
    assert not await is_kept(alice)


async def test_only_suites_of_the_account_have_a_bundle(api: PublicApi, alice: ApiUser) -> None:
    suite = await a_suite(alice)
    url = (await alice.post("/v1/checks/url", check_body("url"))).body["id"]
    web = await sign_in(api, alice.secrets.api_key)
    bob = await sign_in(api, (await api.another_user("Bob")).secrets.api_key)

    for user, check in ((web, url), (bob, suite)):
        assert (await user.get(f"/checks/{check}/bundle")).status == 404
        assert (await send_file(user, f"/checks/{check}/bundle", BODY)).status == 404
    assert not await is_kept(alice)


async def test_its_pages_are_accessible_and_nothing_in_them_runs(
    browser: Browser, alice: ApiUser, web: WebUser
) -> None:
    check = await a_suite(alice, '<script>alert(1)</script>"><img src=x> ' + "W" * 120)
    for theme, width in (("light", 1440), ("dark", 390)):
        context = await browser.new_context(
            base_url=web.url, color_scheme=theme, viewport={"width": width, "height": 900}
        )
        await context.add_cookies([{"name": SESSION_COOKIE, "value": web.session, "url": web.url}])
        page = await context.new_page()
        complaints = collect_complaints(page)
        for path in (NEW, f"/checks/{check}/bundle", f"/checks/{check}/edit"):
            await page.goto(path)
            assert await find_violations(page) == [], path
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert complaints == []
        await context.close()
