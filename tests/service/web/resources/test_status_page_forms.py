"""Status pages, their services and incidents, as whoever is signed in manages them."""

import re
from html import unescape

import pytest
from playwright.async_api import Browser, Page

from service.accounts.model import Role
from service.web.cookies import SESSION_COOKIE
from tests.builders.status_pages import INCIDENTS, PAGES, a_page, a_service, an_incident, say
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser, sign_in

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)> \u202e ' + "W" * 120


async def test_everything_is_found_from_one_page(alice: ApiUser, web: WebUser) -> None:
    assert "No status page yet" in (await web.get("/status-pages")).text
    service = await a_service(alice)
    page = await a_page(alice, service)
    going_on = await an_incident(alice, service, name="Still broken")
    over = await an_incident(alice, service, name="Fixed again")
    await say(alice, over, "RESOLVED")

    text = (await web.get("/status-pages")).text

    first, _, rest = text.partition("Past incidents")
    assert "Still broken" in first
    assert "Fixed again" in rest
    for path in (
        f"/status-pages/{page['id']}",
        "/status/shop",
        f"/services/{service}/edit",
        f"/incidents/{going_on['id']}",
        "/incidents/new",
        "/services/new",
        "/status-pages/new",
    ):
        assert f'href="{path}"' in text
        assert (await web.get(path)).status == 200


async def test_services_are_chosen_by_their_names(alice: ApiUser, web: WebUser) -> None:
    service = await a_service(alice, "Checkout")
    made = await a_page(alice, service)

    text = (await web.get(f"/status-pages/{made['id']}/edit")).text

    assert f'<option value="{service}" selected>Checkout</option>' in text


async def test_each_new_card_has_a_service_to_choose_and_more_at_will(
    alice: ApiUser, page: Page
) -> None:
    names = ("Checkout", "Search", "Mail")
    services = {name: await a_service(alice, name) for name in names}
    await page.goto("/status-pages/new")
    await page.get_by_label("Name", exact=True).first.fill("Shop")
    await page.locator('[name="url"]').fill("shop")
    await page.locator('[name="cards[0].name"]').fill("First")
    await page.get_by_label("Service", exact=True).select_option(label="Checkout")
    await page.get_by_role("button", name="Add card").click()
    await page.locator('[name="cards[1].name"]').fill("Second")
    second = page.locator(".entry", has=page.locator('[name="cards[1].name"]'))
    await second.get_by_label("Service", exact=True).select_option(label="Search")
    await second.get_by_role("button", name="Add service").click()
    await second.get_by_label("Service", exact=True).last.select_option(label="Mail")
    await page.get_by_role("button", name="Create").click()
    await page.wait_for_url("**/status-pages/*-*")

    (made,) = (await alice.get(PAGES)).body["entries"]
    shown = [[one["id"] for one in card["services"]] for card in made["cards"]]
    assert shown == [[services["Checkout"]], [services["Search"], services["Mail"]]]


async def test_a_new_incident_begins_now_with_what_visitors_read_of_it(
    alice: ApiUser, page: Page
) -> None:
    service, _ = await a_service(alice, "Checkout"), await a_service(alice, "Search")
    await page.goto("/incidents/new")
    assert await page.get_by_label("Began at").input_value()
    await page.get_by_role("button", name="Publish").click()
    assert await page.locator(".problem").all_inner_texts() == [
        "Name must not be empty.",
        "Services must not be empty.",
        "Description must not be empty.",
    ]
    await page.get_by_label("Name").fill("Orders fail")
    await page.get_by_label("Checkout").check()
    await page.get_by_label("Critical").check()
    await page.get_by_label("What visitors read").fill("Nobody can pay.\nWe look into it.")
    await page.get_by_role("button", name="Publish").click()
    await page.wait_for_url("**/incidents/*-*")

    (made,) = (await alice.get(INCIDENTS)).body["entries"]
    assert (made["name"], made["severity"]) == ("Orders fail", "CRITICAL")
    assert [one["id"] for one in made["services"]] == [service]
    (update,) = made["incidentUpdates"]
    assert update["description"] == "Nobody can pay.\nWe look into it."
    assert update["publicIncidentUpdateDate"] <= update["created_at"]


async def test_an_update_is_published_by_a_form(alice: ApiUser, web: WebUser) -> None:
    service = await a_service(alice)
    incident = await an_incident(alice, service)
    path = f"/incidents/{incident['id']}"

    empty = await web.post(path, {"status": "RESOLVED", "description": ""})
    assert empty.status == 422
    assert '<option value="RESOLVED" selected>' in empty.text
    done = await web.post(path, {"status": "RESOLVED", "description": "It works again."})

    assert (done.status, done.headers["location"]) == (303, path)
    found = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body
    assert found["lastUpdateStatus"] == "RESOLVED"
    assert found["incidentUpdates"][0]["description"] == "It works again."


async def test_an_open_incident_is_resolved_at_once_and_leads_to_what_visitors_see(
    alice: ApiUser, web: WebUser
) -> None:
    service, hidden = await a_service(alice), await a_service(alice, "Mail")
    await a_page(alice, service, name="Shop status", url="shop")
    incident = await an_incident(alice, service)
    path = f"/incidents/{incident['id']}"
    shown = (await web.get(path)).text
    assert '<a href="/status/shop">Shop status</a>' in shown
    assert "visitors read “Partly down”" in shown
    fields = re.findall(r'type="hidden" name="(status|description)" value="([^"]+)"', shown)

    assert (await web.post(path, dict(fields))).status == 303

    found = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body
    assert found["lastUpdateStatus"] == "RESOLVED"
    after = (await web.get(path)).text
    assert ">Resolve<" not in after
    assert "visitors read “" not in after
    unseen = await an_incident(alice, hidden)
    assert "No status page shows its services" in (await web.get(f"/incidents/{unseen['id']}")).text


async def test_what_was_resolved_meanwhile_is_reopened_only_on_purpose(
    alice: ApiUser, web: WebUser
) -> None:
    incident = await an_incident(alice, await a_service(alice))
    path = f"/incidents/{incident['id']}"
    await web.post(path, {"status": "RESOLVED", "description": "It works again."})
    update = {"status": "IDENTIFIED", "description": "A cable."}

    warned = await web.post(path, {**update, "seen": "INVESTIGATING"})

    assert warned.status == 422
    assert "It was resolved after you opened this page." in warned.text
    assert 'name="seen" value="RESOLVED"' in warned.text
    assert "A cable." in warned.text
    assert (await web.post(path, {**update, "seen": "RESOLVED"})).status == 303


async def test_an_incident_keeps_its_updates_when_its_form_is_saved(
    alice: ApiUser, page: Page
) -> None:
    incident = await an_incident(alice, await a_service(alice))
    await page.goto(f"/incidents/{incident['id']}/edit")
    await page.get_by_label("Name").fill("Orders fail in Europe")
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url(f"**/incidents/{incident['id']}")

    assert await page.get_by_role("heading", level=1).inner_text() == "Orders fail in Europe"
    found = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body
    assert len(found["incidentUpdates"]) == 1


async def test_an_incident_is_changed_by_the_same_fields_as_it_is_made_by(
    alice: ApiUser, web: WebUser, page: Page
) -> None:
    mail, shop = await a_service(alice, "Mail"), await a_service(alice, "Shop")
    incident = await an_incident(alice, shop, mail)
    path = f"/incidents/{incident['id']}"
    await page.goto(f"{path}/edit")
    assert "Partly down" in await page.get_by_label("Major").locator("..").inner_text()
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url(f"**{path}")
    unchanged = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body
    assert unchanged["services"] == incident["services"]

    await page.goto(f"{path}/edit")
    await page.get_by_label("Minor").check()
    await page.get_by_label("Mail").uncheck()
    await page.get_by_label("Shop").uncheck()
    await page.get_by_role("button", name="Save").click()
    assert await page.locator(".problem").all_inner_texts() == ["Services must not be empty."]
    assert await page.get_by_label("Minor").is_checked()
    await page.get_by_label("Mail").check()
    await alice.put(f"{INCIDENTS}/{incident['id']}", {**unchanged, "name": "Renamed"})
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("Somebody else changed this").wait_for()
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url(f"**{path}")
    found = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body
    assert (found["name"], found["severity"]) == ("Orders fail", "MINOR")
    assert [one["id"] for one in found["services"]] == [mail]


async def test_a_new_key_is_shown_once_and_the_former_one_ends(
    alice: ApiUser, api: PublicApi, web: WebUser
) -> None:
    made = await a_page(alice, isPrivate=True)
    former = made["keys"][0]["rawKey"]

    answer = await web.post(f"/status-pages/{made['id']}/keys", {})

    shown = await web.follow(answer)
    key = unescape(shown.text).partition("<code>sp_")[2].partition("</code>")[0]
    for one, status in ((f"sp_{key}", 200), (former, 404)):
        headers = {"authorization": f"Bearer {one}"}
        async with api.http.get(api.url + "/status/shop", headers=headers) as seen:
            assert seen.status == status
    assert shown.headers["cache-control"] == "no-store"
    assert key not in (await web.get(f"/status-pages/{made['id']}")).text


async def test_the_first_key_of_a_private_page_is_shown_once_after_its_form_is_saved(
    alice: ApiUser, page: Page
) -> None:
    await a_service(alice)
    await page.goto("/status-pages/new?kind=")
    await page.get_by_label("Name", exact=True).first.fill("Shop")
    await page.locator('[name="url"]').fill("shop")
    await page.locator('[name="isPrivate"][value="true"]').check()
    await page.get_by_role("button", name="Create").click()
    key = await page.locator(".copy code").inner_text()
    await page.reload()

    assert key.startswith("sp_")
    assert await page.locator(".copy code").count() == 0


async def test_a_card_that_is_renamed_stays_the_card_and_its_id_is_never_shown(
    alice: ApiUser, page: Page
) -> None:
    made = await a_page(alice, await a_service(alice))
    await page.goto(f"/status-pages/{made['id']}/edit")
    assert made["cards"][0]["id"] not in await page.locator("main").inner_text()
    assert await page.locator('[name="cards[0].id"]').is_hidden()
    await page.locator('[name="cards[0].name"]').fill("Renamed")
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url(f"**/status-pages/{made['id']}")

    (card,) = (await alice.get(f"{PAGES}/{made['id']}")).body["cards"]
    assert (card["id"], card["name"]) == (made["cards"][0]["id"], "Renamed")


async def test_what_was_said_is_corrected_by_a_form(alice: ApiUser, web: WebUser) -> None:
    incident = await an_incident(alice, await a_service(alice))
    (said,) = incident["incidentUpdates"]
    path = f"/incidents/{incident['id']}/updates/{said['id']}"
    assert f'href="{path}"' in (await web.get(f"/incidents/{incident['id']}")).text
    at = said["publicIncidentUpdateDate"]
    assert at.removesuffix("Z") in (await web.get(path)).text
    form = {"status": "MONITORING", "description": "", "at": at.removesuffix("Z")}

    assert (await web.post(path, form)).status == 422
    done = await web.post(path, {**form, "description": "Corrected."})

    assert done.headers["location"] == f"/incidents/{incident['id']}"
    (after,) = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body["incidentUpdates"]
    assert after == {**said, "status": "MONITORING", "description": "Corrected."}


async def test_an_update_is_deleted_once_whoever_asked_for_it_has_confirmed(
    alice: ApiUser, page: Page
) -> None:
    incident = await an_incident(alice, await a_service(alice))
    (first,) = incident["incidentUpdates"]
    second = await say(alice, incident, "RESOLVED", description="Said by mistake.")
    await page.goto(f"/incidents/{incident['id']}/updates/{second['id']}")
    await page.get_by_role("link", name="Delete").click()
    assert "Said by mistake." in await page.locator("main").inner_text()
    kept = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body["incidentUpdates"]
    assert {one["id"] for one in kept} == {first["id"], second["id"]}
    await page.get_by_role("button", name="Delete update").click()
    await page.wait_for_url(f"**/incidents/{incident['id']}")

    found = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body
    assert [one["id"] for one in found["incidentUpdates"]] == [first["id"]]
    assert found["lastUpdateStatus"] == "INVESTIGATING"


async def test_an_incident_is_shown_after_its_only_update_was_asked_to_go(
    alice: ApiUser, web: WebUser
) -> None:
    incident = await an_incident(alice, await a_service(alice))
    (only,) = incident["incidentUpdates"]
    path = f"/incidents/{incident['id']}"

    answer = await web.post(f"{path}/updates/{only['id']}/delete", {})

    assert answer.status in {303, 422}
    assert (await web.get(path)).status == 200


async def test_addresses_are_subscribed_together_however_they_are_divided(
    alice: ApiUser, web: WebUser
) -> None:
    made = await a_page(alice)
    path = f"/status-pages/{made['id']}/subscribers"
    typed = "ann@example.com, ben@example.com\r\ncleo@example.com;ann@example.com\r\n"

    done = await web.post(path, {"addresses": typed})

    found = (await alice.get(f"{PAGES}/{made['id']}/subscriptions")).body
    assert sorted(one["address"] for one in found) == [
        "ann@example.com",
        "ben@example.com",
        "cleo@example.com",
    ]
    text = (await web.get(done.headers["location"].partition("#")[0])).text
    assert (
        "Added 3 addresses, which wait for confirmation. 1 address was subscribed already." in text
    )


async def test_a_wrong_address_is_named_and_nobody_is_subscribed(
    alice: ApiUser, web: WebUser
) -> None:
    made = await a_page(alice)
    path = f"/status-pages/{made['id']}/subscribers"

    refused = await web.post(path, {"addresses": "ann@example.com\nb<e>n"})

    assert refused.status == 422
    assert "\N{LEFT DOUBLE QUOTATION MARK}b&lt;e&gt;n\N{RIGHT DOUBLE QUOTATION MARK} is no" in (
        refused.text
    )
    assert "ann@example.com" in refused.text.partition("<textarea")[2].partition("</textarea>")[0]
    assert (await web.post(path, {"addresses": " "})).status == 422
    assert (await alice.get(f"{PAGES}/{made['id']}/subscriptions")).body == []


async def test_a_subscription_can_be_ended(alice: ApiUser, web: WebUser) -> None:
    made = await a_page(alice)
    path = f"{PAGES}/{made['id']}/subscriptions"
    body = {"subscriptions": [{"type": "EMAIL", "config": "ann@example.com"}]}
    await alice.post(f"{path}/bulk", body)
    (one,) = (await alice.get(path)).body
    assert "ann@example.com" in (await web.get(f"/status-pages/{made['id']}")).text

    await web.post(f"/status-pages/{made['id']}/subscriptions/{one['id']}", {})

    assert (await alice.get(path)).body == []


async def test_what_another_account_has_is_not_found(api: PublicApi, alice: ApiUser) -> None:
    incident = await an_incident(alice, await a_service(alice))
    made = await a_page(alice, isPrivate=True)
    bob = await sign_in(api, (await api.another_user("Bob")).secrets.api_key)

    for path in (f"/incidents/{incident['id']}", f"/status-pages/{made['id']}"):
        assert (await bob.get(path)).status == 404
    said = {"status": "RESOLVED", "description": "x"}
    assert (await bob.post(f"/incidents/{incident['id']}", said)).status == 404
    assert (await bob.post(f"/status-pages/{made['id']}/keys", {})).status == 404


async def test_who_may_only_read_is_offered_nothing_to_change(
    api: PublicApi, alice: ApiUser
) -> None:
    incident = await an_incident(alice, await a_service(alice))
    made = await a_page(alice, isPrivate=True)
    reader = await sign_in(api, (await api.colleague("Rita", role=Role.READ_ONLY)).secrets.api_key)

    for path in ("/status-pages", f"/status-pages/{made['id']}", f"/incidents/{incident['id']}"):
        text = (await reader.get(path)).text
        assert 'method="post" action="/status-pages' not in text
        assert "Publish" not in text
        assert "New status page" not in text
    (update,) = incident["incidentUpdates"]
    for path, form in (
        (f"/status-pages/{made['id']}/keys", {}),
        (f"/status-pages/{made['id']}/subscribers", {"addresses": "ann@example.com"}),
    ):
        assert (await reader.post(path, form)).status == 403
    await reader.post(f"/incidents/{incident['id']}/updates/{update['id']}/delete", {})
    kept = (await alice.get(f"{INCIDENTS}/{incident['id']}")).body["incidentUpdates"]
    assert kept == [update]


@pytest.mark.parametrize("name", ["Checkout", HOSTILE])
async def test_its_pages_are_accessible_and_nothing_in_them_runs(
    browser: Browser, alice: ApiUser, web: WebUser, name: str
) -> None:
    service = await a_service(alice, name)
    card = {"name": name, "services": [{"id": service}]}
    made = await a_page(alice, name=name, description=name, cards=[card], isPrivate=True)
    update = {"description": name, "status": "IDENTIFIED"}
    incident = await an_incident(alice, service, name=name, incidentUpdates=[update])
    subscribers = {"subscriptions": [{"type": "EMAIL", "config": "ann@example.com"}]}
    await alice.post(f"{PAGES}/{made['id']}/subscriptions/bulk", subscribers)
    for theme, width in (("light", 1440), ("dark", 390)):
        context = await browser.new_context(
            base_url=web.url, color_scheme=theme, viewport={"width": width, "height": 900}
        )
        await context.add_cookies([{"name": SESSION_COOKIE, "value": web.session, "url": web.url}])
        page = await context.new_page()
        complaints = collect_complaints(page)
        for path in (
            "/status-pages",
            f"/status-pages/{made['id']}",
            f"/status-pages/{made['id']}/edit",
            f"/incidents/{incident['id']}",
            f"/incidents/{incident['id']}/updates/{incident['incidentUpdates'][0]['id']}",
            f"/incidents/{incident['id']}/updates/{incident['incidentUpdates'][0]['id']}/delete",
            "/incidents/new",
        ):
            await page.goto(path)
            assert await find_violations(page) == [], path
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert complaints == []
        await context.close()
