"""Locations: who is there, keys, and what nobody ran."""

import re
import time
from typing import Any

from playwright.async_api import Browser, Page

from service.accounts.model import Role
from service.web.cookies import SESSION_COOKIE
from tests.builders.made_checks import made
from tests.builders.stored_results import passed, store
from tests.servers.public_api import PublicApi
from tests.servers.service import RunningService
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser, sign_in

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>\u202e' + "ん" * 150


async def _hello(service: RunningService, **changes: Any) -> None:
    assert (await service.hello(**changes)).status == 200


async def _signed_in(service: RunningService) -> WebUser:
    return await sign_in(service, service.secrets.api_key)


async def test_a_new_location_shows_its_key_once_with_commands_that_start_an_agent(
    page: Page, web: WebUser
) -> None:
    complaints = collect_complaints(page)
    await page.goto("/locations")
    await page.get_by_role("link", name="New location").click()
    await page.get_by_label("Name").fill("Cellar")
    await page.get_by_label("Slug").fill("cellar")
    await page.get_by_role("button", name="Create location").click()

    text = await page.locator("#start").inner_text()
    (key,) = set(re.findall(r"pl_[\w-]{40,}", text))
    assert "docker run" in text
    assert not page.url.endswith("/new")
    await page.reload()
    assert key not in await page.content()
    assert complaints == []


async def test_what_is_wrong_with_a_location_is_said_where_it_was_typed(page: Page) -> None:
    await page.goto("/locations/new")
    await page.get_by_label("Name").fill("Cellar")
    await page.get_by_label("Slug").fill("The Cellar")
    await page.get_by_role("button", name="Create location").click()

    alert = await page.get_by_role("alert").inner_text()
    assert "lower-case letters" in alert
    assert await page.get_by_label("Slug").get_attribute("aria-invalid") == "true"
    assert await page.get_by_label("Name").input_value() == "Cellar"


async def test_an_agent_is_shown_with_what_it_cannot_run(service: RunningService) -> None:
    web = await _signed_in(service)
    await _hello(
        service,
        unavailable=[
            {
                "type": "ICMP",
                "cause": "No ping sockets.",
                "remedy": "Allow them.",
                "onlyWithScripts": False,
            },
            {
                "type": "API",
                "cause": "No ping sockets.",
                "remedy": "Allow them.",
                "onlyWithScripts": True,
            },
        ],
    )

    listed = (await web.get("/locations")).text
    shown = (await web.get(f"/locations/{service.secrets.location_id}")).text

    assert listed.count("No ping sockets.") == 1
    assert "Cannot run ICMP and API with scripts here: No ping sockets." in listed
    assert "1 agent is connected" in shown
    assert "Allow them." in shown


async def test_keys_are_rotated_without_a_moment_without_one(page: Page, api: PublicApi) -> None:
    await page.goto(f"/locations/{api.alice.secrets.location_id}")
    old = await page.locator("td.mono").first.inner_text()
    await page.get_by_role("button", name="Rotate key").click()
    assert await page.get_by_text("shown only this once").is_visible()
    assert not await page.get_by_role("button", name="Rotate key").is_visible()

    page.on("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("row").filter(has_text=old).get_by_role("button", name="Revoke").click()

    await page.wait_for_url("**/locations/*")
    assert old not in await page.content()


async def test_runs_that_nobody_made_are_counted_with_their_cause(
    api: PublicApi, web: WebUser
) -> None:
    check = await made(api.alice)
    now_ms = int(time.time() * 1000)
    await store(api, check, started_ms=now_ms - 60_000, due_times=12, stopped_ms=now_ms)
    await store(api, check, started_ms=now_ms - 2 * 86_400_000)
    await store(api, check, passed(), started_ms=now_ms - 1000)

    text = (await web.get(f"/locations/{api.alice.secrets.location_id}")).text

    assert "12 runs: no agent was connected that runs the type" in text
    assert "1 check runs here" in text


async def test_whoever_may_only_read_changes_nothing(api: PublicApi) -> None:
    reader = await api.colleague("Reader", role=Role.READ_ONLY)
    web = await sign_in(api, reader.secrets.api_key)
    path = f"/locations/{api.alice.secrets.location_id}"

    shown = (await web.get(path)).text
    refused = await web.post(path, {"name": "Mine"})

    assert "<button>Save" not in shown
    assert refused.status == 422
    assert "READ_WRITE" in refused.text


async def test_a_stranger_s_location_is_not_there(api: PublicApi) -> None:
    charlie = await api.another_user("Charlie")
    web = await sign_in(api, charlie.secrets.api_key)

    assert (await web.get(f"/locations/{api.alice.secrets.location_id}")).status == 404


async def test_locations_are_accessible_and_run_nothing_that_a_name_holds(
    browser: Browser, web: WebUser, api: PublicApi
) -> None:
    made = await api.alice.post(
        "/v1/private-locations", {"name": HOSTILE[:200], "slugName": "hostile"}
    )
    for theme, width in (("light", 1440), ("dark", 390)):
        context = await browser.new_context(
            base_url=web.url, color_scheme=theme, viewport={"width": width, "height": 900}
        )
        await context.add_cookies([{"name": SESSION_COOKIE, "value": web.session, "url": web.url}])
        page = await context.new_page()
        complaints = collect_complaints(page)
        for path in ("/locations", f"/locations/{made.body['id']}", "/locations/new"):
            await page.goto(path)
            assert await find_violations(page) == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []
        await context.close()
