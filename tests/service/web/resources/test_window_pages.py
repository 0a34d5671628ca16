"""Maintenance windows, as whoever is signed in plans them."""

from playwright.async_api import Page

from service.maintenance.model import WindowRow
from service.web.resources.window_pages import describe_repetition
from tests.servers.public_api import ApiUser
from tests.service.maintenance.test_maintenance_rules import window

TIMES = {"startsAt": "2026-12-01T02:00:00Z", "endsAt": "2026-12-01T03:00:00Z"}


async def test_a_window_is_planned_in_words_and_announced_if_nobody_objects(
    alice: ApiUser, page: Page
) -> None:
    await page.goto("/maintenance/new")
    await page.get_by_label("Name").fill("Database upgrade")
    await page.get_by_label("Starts").fill("2026-12-01T02:00")
    await page.get_by_label("Ends").fill("2026-12-01T03:00")
    await page.get_by_label("Time zone").select_option("Europe/Berlin")
    assert await page.get_by_label("Interval").is_hidden()
    await page.get_by_label("Weekly").check()
    assert await page.get_by_label("Interval").is_visible()
    await page.get_by_role("button", name="Create").click()
    await page.wait_for_url("**/maintenance")

    assert "every week" in await page.locator("main").inner_text()
    (made,) = (await alice.get("/v1/maintenance-windows")).body
    shown = {name: made[name] for name in ("startsAt", "repeatInterval", "showOnStatusPages")}
    assert shown == {
        "startsAt": "2026-12-01T01:00:00.000Z",
        "repeatInterval": 1,
        "showOnStatusPages": True,
    }


def test_how_a_window_repeats_is_said_in_words() -> None:
    windows: list[WindowRow] = [
        window(TIMES),
        window({**TIMES, "repeatInterval": 1, "repeatUnit": "DAY"}),
        window({**TIMES, "repeatInterval": 2, "repeatUnit": "WEEK"}),
        window({**TIMES, "rrule": "FREQ=MONTHLY"}),
    ]

    assert [describe_repetition(one) for one in windows] == [
        "once",
        "every day",
        "every 2 weeks",
        "by the rule FREQ=MONTHLY",
    ]
