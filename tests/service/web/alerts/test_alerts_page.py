"""What went wrong, who was notified, and how it ended."""

import html
import re
import time
from typing import Any

from playwright.async_api import Browser
from sqlalchemy import func, select

from contract.result import Failure, FailureKind
from service.alert_channels.model import NotificationStatus
from service.alerting import actions as alerting
from service.db.tables.alert_channels import alert_notification
from service.db.tables.alerting import alert_state, check_alert
from service.locations import actions as locations
from service.web.cookies import SESSION_COOKIE
from tests.builders.alert_channels import a_channel
from tests.builders.alerting import an_outcome_of
from tests.builders.made_checks import made
from tests.builders.stored_results import store
from tests.servers.public_api import PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser, sign_in

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


async def _play(api: PublicApi, check: dict[str, Any], letters: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    for number, letter in enumerate(letters):
        started_ms = now_ms - (len(letters) - number) * 60_000
        await store(api, check, an_outcome_of(letter), started_ms=started_ms)


async def test_an_alert_that_goes_on_is_told_from_one_that_is_over(
    api: PublicApi, web: WebUser
) -> None:
    await _play(api, await made(api.alice, name="Broken shop"), "PF")
    await _play(api, await made(api.alice, name="Mended shop"), "PFP")

    going_on, _, over = (await web.get("/alerts")).text.partition('id="past"')

    assert "Broken shop" in going_on
    assert "Broken shop" not in over
    assert "Mended shop" in over
    assert "Recovered" in over
    assert "The connection was refused." in going_on


async def test_what_has_gone_on_for_longer_than_the_page_looks_back_is_shown(
    api: PublicApi, web: WebUser
) -> None:
    check = await made(api.alice, name="Old wound")
    await _play(api, check, "PF")
    long_ago_ms = time.time_ns() // 1_000_000 - 9 * 86_400_000

    def age(connection: Any) -> None:
        connection.execute(alert_state.update().values(began_ms=long_ago_ms))
        connection.execute(check_alert.update().values(created_ms=long_ago_ms + 1))

    await api.database.write(age)

    assert "Old wound" in (await web.get("/alerts")).text
    assert "Old wound" in (await web.get(f"/alerts?check={check['id']}")).text


async def test_an_alert_says_to_whom_it_went_and_what_became_of_it(
    api: PublicApi, web: WebUser
) -> None:
    await a_channel(api.alice, "WEBHOOK", config={"name": "Pager", "url": "https://a.example/"})
    await _play(api, await made(api.alice, name="Shop"), "PF")
    refused = {
        "status": NotificationStatus.FAILURE.value,
        "attempts": 3,
        "outcome": "The receiver answered 410.",
    }
    await api.database.write(lambda c: c.execute(alert_notification.update().values(**refused)))

    text = (await web.get("/alerts")).text

    assert "Pager" in text
    assert "not delivered after 3 tries" in text
    assert "The receiver answered 410." in text


async def test_an_alert_that_is_tried_again_is_not_called_on_its_way(
    api: PublicApi, web: WebUser
) -> None:
    await a_channel(api.alice, "WEBHOOK", config={"name": "Pager", "url": "https://a.example/"})
    await _play(api, await made(api.alice, name="Shop"), "PF")
    tried = {"attempts": 3, "outcome": "The receiver answered 503."}
    await api.database.write(lambda c: c.execute(alert_notification.update().values(**tried)))

    text = (await web.get("/alerts")).text

    assert "not delivered yet after 3 tries" in text
    assert "on its way" not in text


async def test_the_list_of_channels_says_what_keeps_the_newest_notification_waiting(
    api: PublicApi, web: WebUser
) -> None:
    await a_channel(api.alice, "WEBHOOK", config={"name": "Pager", "url": "https://a.example/"})
    await _play(api, await made(api.alice, name="Shop"), "PFP")
    tried = alert_notification.update().values(attempts=3, outcome="The receiver answered 503.")
    first = select(func.min(alert_notification.c.serial)).scalar_subquery()
    await api.database.write(lambda c: c.execute(tried.where(alert_notification.c.serial == first)))

    text = (await web.get("/channels")).text

    assert "not delivered yet" in text
    assert "The receiver answered 503." in text


async def _tell_notes(web: WebUser, check: dict[str, Any]) -> list[str]:
    """Why nobody was notified, by alert; the alerts page and the check's own say the same."""
    page = await web.get(f"/alerts?check={check['id']}")
    tab = await web.get(f"/checks/{check['id']}?tab=alerts")
    notes = re.findall(r"Nobody was notified: [^<]*", page.text)
    assert sorted(re.findall(r"Nobody was notified: [^<]*", tab.text)) == sorted(notes)
    return [html.unescape(one) for one in notes]


async def test_an_alert_that_reached_nobody_says_why_it_did_not_then(
    api: PublicApi, web: WebUser
) -> None:
    shop = await made(api.alice, name="Shop")
    await _play(api, shop, "PF")
    channel = await a_channel(api.alice, "EMAIL")
    await api.alice.put(
        f"/v1/alert-channels/{channel}/subscriptions", {"checkId": shop["id"], "activated": True}
    )
    await _play(api, shop, "P")
    slow = await made(api.alice, name="Slow shop")
    await _play(api, slow, "PD")
    muted = await made(api.alice, name="Quiet shop", muted=True)
    await _play(api, muted, "PF")

    assert await _tell_notes(web, shop) == [
        "Nobody was notified: no channel was subscribed at that time.",
        "Nobody was notified: no channel had been notified before it recovered.",
    ]
    assert await _tell_notes(web, slow) == [
        "Nobody was notified: no channel that was subscribed takes alerts of this kind."
    ]
    assert await _tell_notes(web, muted) == ["Nobody was notified: the check was muted."]
    for check, path in (
        (shop, f"/checks/{shop['id']}/edit"),
        (slow, "/channels"),
        (muted, f"/checks/{muted['id']}/edit"),
    ):
        for page in (f"/alerts?check={check['id']}", f"/checks/{check['id']}?tab=alerts"):
            assert f'<a class="underlined" href="{path}">' in (await web.get(page)).text


async def test_an_alert_names_the_maintenance_window_that_kept_it_back(
    api: PublicApi, web: WebUser
) -> None:
    window = {"name": "Deploy <1>", "startsAt": "2020-01-01", "endsAt": "2099-01-01"}
    assert (await api.alice.post("/v1/maintenance-windows", window)).status == 201
    shop = await made(api.alice, name="Shop")
    await _play(api, shop, "PF")

    assert await _tell_notes(web, shop) == [
        "Nobody was notified: the maintenance window “Deploy <1>” was open."
    ]
    [alert] = (await api.alice.get(f"/v1/check-alerts/{shop['id']}")).body
    assert (alert["silence"], alert["maintenanceWindow"]) == ("MAINTENANCE", "Deploy <1>")


async def test_what_goes_on_says_which_maintenance_covers_it_and_what_it_opened(
    api: PublicApi, web: WebUser
) -> None:
    service = await api.alice.post("/v1/status-pages/services", {"name": "Orders"})
    wanted = {
        "serviceId": service.body["id"],
        "severity": "MAJOR",
        "name": "Orders fail",
        "description": "We look into it.",
        "notifySubscribers": False,
    }
    await a_channel(api.alice)
    shop = await made(api.alice, name="Shop", tags=["shop"], triggerIncident=wanted)
    await made(api.alice, name="Search")
    await _play(api, shop, "PF")
    before = (await web.get("/alerts")).text
    window = {"name": "Deploy", "tags": ["shop"], "startsAt": "2020-01-01", "endsAt": "2099-01-01"}
    assert (await api.alice.post("/v1/maintenance-windows", window)).status == 201

    top, _, alert = (await web.get("/alerts")).text.partition('id="going-on"')
    link = re.search(r'"(/incidents/[^"]+)">Orders fail<', alert)
    assert link is not None
    incident = (await web.get(link[1])).text
    settings = (await web.get(f"/checks/{shop['id']}?tab=settings")).text

    assert "In maintenance" not in before
    assert "Deploy" in top
    assert "1 check covered" in top
    assert "Deploy" in alert
    assert f'<a href="/checks/{shop["id"]}">Shop</a>' in incident
    assert "major incident of Orders" in settings


async def test_what_goes_on_says_what_its_newest_failed_run_found(
    api: PublicApi, web: WebUser
) -> None:
    shop = await made(api.alice, name="Shop")
    await _play(api, shop, "PF")
    found = "The connection timed out."
    later = an_outcome_of("F", failure=Failure(kind=FailureKind.CONNECT, message=found))
    await store(api, shop, later, started_ms=time.time_ns() // 1_000_000)

    text = (await web.get("/alerts")).text

    assert found in text
    assert "The connection was refused." not in text


async def test_a_location_without_agents_is_one_alert(api: PublicApi, web: WebUser) -> None:
    await made(api.alice, name="Shop")
    location_id = api.alice.secrets.location_id

    def report(connection: Any) -> None:
        now_ms = api.backend.clock.now_ms(connection)
        row = locations.find_in_any_account(connection, location_id)
        assert row is not None
        alerting.report_location(
            connection, row, since_ms=now_ms - 600_000, is_recovery=False, now_ms=now_ms
        )

    await api.database.write(report)

    assert "No agent was connected; 1 checks did not run: Shop." in (await web.get("/alerts")).text


async def test_a_range_is_in_the_address_and_nothing_else_is_taken(web: WebUser) -> None:
    assert "No alert in 24 h" in (await web.get("/alerts?days=1")).text
    for wrong in ("0", "-1", "x", "9" * 50, "\uff17"):
        assert "No alert in 7 d" in (await web.get("/alerts", params={"days": wrong})).text


async def test_alerts_of_strangers_are_not_shown(api: PublicApi) -> None:
    await _play(api, await made(api.alice, name="Alice's shop"), "PF")
    charlie = await api.another_user("Charlie")

    web = await sign_in(api, charlie.secrets.api_key)

    assert "shop" not in (await web.get("/alerts")).text


async def test_alerts_are_accessible_and_run_nothing_that_a_name_holds(
    browser: Browser, api: PublicApi, web: WebUser
) -> None:
    await a_channel(api.alice, "WEBHOOK", config={"name": HOSTILE, "url": "https://a.example/"})
    await _play(api, await made(api.alice, name=HOSTILE), "PFPF")
    for theme, width in (("light", 1440), ("dark", 390)):
        context = await browser.new_context(
            base_url=web.url, color_scheme=theme, viewport={"width": width, "height": 900}
        )
        await context.add_cookies([{"name": SESSION_COOKIE, "value": web.session, "url": web.url}])
        page = await context.new_page()
        complaints = collect_complaints(page)
        await page.goto("/alerts")
        assert await find_violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []
        await context.close()
