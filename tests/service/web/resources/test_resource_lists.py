"""Lists of groups, variables, certificates, channels and their like; forms that stand alone."""

import re
from dataclasses import replace

from playwright.async_api import Page, expect

from service.http.dependencies import attach
from tests.builders.certificates import certificate_body
from tests.builders.outgoing import tools
from tests.servers.public_api import PublicApi
from tests.servers.receiver import serve_receiver
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser

_LISTS = (
    "/groups",
    "/settings/variables",
    "/settings/snippets",
    "/settings/certificates",
    "/channels",
    "/maintenance",
)
_HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>\N{RIGHT-TO-LEFT OVERRIDE}'


_FORMS = (
    "/channels/new?kind=WEBHOOK",
    "/maintenance/new",
    "/settings/snippets/new",
    "/settings/certificates/new",
    "/settings/alerting",
)
_NAMED = tuple(path for path in _LISTS if path != "/settings/certificates")


async def fill(api: PublicApi, name: str) -> None:
    """One of each."""
    bodies = {
        "/v2/check-groups": {"name": name, "tags": [name]},
        "/v1/variables": {"key": "API_URL", "value": name},
        "/v1/snippets": {"name": "sign-in", "script": f"// {name}"},
        "/v1/client-certificates": certificate_body(),
        "/v1/alert-channels": {
            "type": "WEBHOOK",
            "config": {"name": name, "url": "https://hooks.example/very-secret"},
        },
        "/v1/maintenance-windows": {
            "name": name,
            "tags": [name],
            "startsAt": "2030-03-01T03:00:00Z",
            "endsAt": "2030-03-01T05:00:00Z",
            "repeatInterval": 1,
            "repeatUnit": "DAY",
        },
    }
    for path, body in bodies.items():
        made = await api.alice.post(path, body)
        assert made.status == 201, made.body


async def test_an_empty_list_says_what_it_is_for_and_leads_to_the_form(web: WebUser) -> None:
    for path in _LISTS:
        shown = await web.get(path)
        assert 'class="empty"' in shown.text
        assert f'href="{path}/new' in shown.text


async def test_lists_show_what_is_there_and_no_secret(api: PublicApi, web: WebUser) -> None:
    await fill(api, "Checkout")
    await api.alice.post("/v1/variables", {"key": "PIN", "value": "very-secret", "secret": True})
    await api.alice.post("/v1/variables", {"key": "USER", "value": "very-secret", "locked": True})
    for path in _NAMED:
        shown = await web.get(path)
        assert "Checkout" in shown.text
        assert "very-secret" not in shown.text


async def test_a_snippet_is_made_changed_and_deleted_by_its_forms(
    api: PublicApi, page: Page
) -> None:
    await page.goto("/settings/snippets")
    await page.get_by_role("link", name="New snippet").click()
    await page.get_by_label("Name").fill("sign-in")
    await page.get_by_label("Script").fill("module.exports = 1\nmore = 2")
    await page.get_by_role("button", name="Create").click()
    await page.get_by_role("link", name="sign-in").click()
    await page.get_by_label("Script").fill("module.exports = 3")
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**/settings/snippets")
    (stored,) = (await api.alice.get("/v1/snippets")).body
    assert (stored["name"], stored["script"]) == ("sign-in", "module.exports = 3")

    await page.get_by_role("link", name="sign-in").click()
    await page.get_by_role("link", name="Delete").click()
    await page.get_by_role("button", name="Delete snippet").click()
    await page.wait_for_url("**/settings/snippets")
    assert (await api.alice.get("/v1/snippets")).body == []


async def test_a_client_certificate_is_added_shown_without_its_key_and_deleted(
    api: PublicApi, page: Page
) -> None:
    body = certificate_body()
    await page.goto("/settings/certificates")
    await page.get_by_role("link", name="New certificate").click()
    await page.get_by_label("Host").fill(body["host"])
    await page.get_by_label("Certificate").fill("no certificate")
    await page.get_by_label("Key", exact=True).fill(body["key"])
    await page.get_by_role("button", name="Create").click()
    await expect(page.locator("[name=cert]")).to_have_attribute("aria-invalid", "true")
    await page.get_by_label("Certificate").fill(body["cert"])
    await page.get_by_role("button", name="Create").click()
    await page.wait_for_url("**/settings/certificates")
    assert body["host"] in await page.locator("table").inner_text()
    assert "PRIVATE KEY" not in await page.content()

    await page.get_by_role("link", name="Delete").click()
    await page.get_by_role("button", name="Delete certificate").click()
    await page.wait_for_url("**/settings/certificates")
    assert (await api.alice.get("/v1/client-certificates")).body == []


async def test_the_alert_settings_of_the_account_are_changed_by_a_form(
    api: PublicApi, page: Page
) -> None:
    await page.goto("/settings/alerting")
    await page.get_by_label("Failed runs").last.select_option(label="3")
    await page.get_by_label("How many").select_option(label="No limit")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("status").get_by_text("Saved.").wait_for()

    found = (await api.alice.get("/v1/accounts/me")).body["alertSettings"]
    assert found["runBasedEscalation"] == {"failedRunThreshold": 3}
    assert found["reminders"]["amount"] == 100_000
    assert found["escalationType"] == "RUN_BASED"


async def test_there_is_no_page_for_what_the_api_cannot_do(api: PublicApi, web: WebUser) -> None:
    made = await api.alice.post("/v1/client-certificates", certificate_body())
    for path in (f"/settings/certificates/{made.body['id']}/edit", "/settings/alerting/new"):
        assert (await web.get(path)).status == 404


async def test_a_window_tells_when_it_opens_the_next_times(api: PublicApi, web: WebUser) -> None:
    await fill(api, "Upgrade")
    shown = (await web.get("/maintenance")).text
    opens = re.findall(r">(2030-03-0\d 03:00:00)</time> <span class=\"quiet\">for 2 h<", shown)
    assert opens == [f"2030-03-0{day} 03:00:00" for day in (1, 2, 3)]


async def test_a_long_list_has_pages(api: PublicApi, web: WebUser) -> None:
    for number in range(101):
        await api.alice.post("/v1/variables", {"key": f"A{number:03}", "value": "1"})
    first = (await web.get("/settings/variables")).text
    second = (await web.get("/settings/variables?page=2")).text
    assert "A099" in first
    assert "A100" not in first
    assert 'href="?page=2"' in first
    assert "A100" in second
    assert (await web.get("/settings/variables?page=-1")).status == 200


async def test_channels_warn_of_links_and_settings_that_are_missing(
    api: PublicApi, web: WebUser
) -> None:
    body = {"type": "EMAIL", "config": {"address": "ops@shop.example"}}
    await api.alice.post("/v1/alert-channels", body)

    text = (await web.get("/channels")).text

    assert "<code>SERVICE_PUBLIC_URL</code>" in text
    assert "<code>SMTP_URL</code>" in text


async def test_a_sample_tells_what_the_other_side_answered(api: PublicApi, page: Page) -> None:
    attach(api.app, replace(api.backend, sending=tools()))
    complaints = collect_complaints(page)
    async with serve_receiver() as receiver:
        config = {"name": "Bot", "url": receiver.url}
        await api.alice.post("/v1/alert-channels", {"type": "WEBHOOK", "config": config})
        await page.goto("/channels")
        last = page.locator('[data-label="Last"]')
        await expect(last).to_have_text("none yet")
        await page.get_by_role("button", name="Send test").click()
        await expect(page.get_by_text("The receiver took it.")).to_be_visible()
        await expect(last).to_contain_text("test delivered")
        receiver.answers.append(500)
        await page.get_by_role("button", name="Send test").click()
        await expect(page.get_by_text("answered 500 Internal Server Error")).to_be_visible()
        await expect(last).to_contain_text("test not delivered")
    assert len(receiver.got) == 2
    assert complaints == []


async def test_a_newcomer_is_offered_what_fits_an_assertion(page: Page) -> None:
    await page.goto("/checks/new?kind=API")
    await page.get_by_role("button", name="Add assertion").click()
    await page.get_by_label("Source").select_option(label="Status code")
    await expect(page.get_by_label("Comparison")).to_have_value("EQUALS")
    await expect(
        page.get_by_label("Comparison").get_by_text("Has key", exact=True)
    ).to_be_disabled()
    await expect(page.get_by_label("JSONPath")).to_be_hidden()
    await page.get_by_label("Source").select_option(label="JSON body")
    await expect(page.get_by_label("JSONPath")).to_be_visible()
    await expect(page.get_by_label("Comparison").get_by_text("Has key", exact=True)).to_be_enabled()
    await page.get_by_label("Comparison").select_option(label="Is null")
    await expect(page.get_by_label("Target")).to_be_hidden()


async def test_lists_are_for_everybody_whatever_people_wrote(api: PublicApi, page: Page) -> None:
    complaints = collect_complaints(page)
    await fill(api, _HOSTILE)
    for width in (390, 1440):
        await page.set_viewport_size({"width": width, "height": 900})
        for path in (*_LISTS, *_FORMS):
            await page.goto(path)
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                assert await find_violations(page) == []
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert await page.evaluate(overflow) <= 0
    assert complaints == []
