"""What visitors get at `/status/{url}`."""

import gzip
import json
from http.cookies import SimpleCookie
from typing import Any

import pytest

from service.web.status_page.visitor_pages import KEY_COOKIE
from tests.builders.status_pages import PAGES, SERVICES, a_page, a_service, an_incident, say
from tests.servers.public_api import ApiUser
from tests.service.web.status_page.conftest import Site

LOGO = "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'/%3E"


async def test_all_is_well_in_one_sentence(site: Site, alice: ApiUser) -> None:
    await a_page(alice, await a_service(alice))

    answer = await site.get("/status/shop")

    assert answer.status == 200
    assert "All services are operational." in answer.text
    assert "No incidents in the last 90 days." in answer.text
    assert "Times are in UTC." in answer.text


@pytest.mark.parametrize(
    ("severity", "names", "sentence"),
    [
        ("MINOR", ["Login"], "Login has had minor problems since"),
        ("MEDIUM", ["Checkout"], "Checkout has been degraded since 02:58 UTC."),
        ("MAJOR", ["Checkout", "Login"], "Checkout and Login have been partly down since"),
        ("CRITICAL", ["A", "B", "C", "D"], "A, B and 2 more have been down since"),
    ],
)
async def test_trouble_is_said_with_what_and_since_when(
    site: Site, alice: ApiUser, severity: str, names: list[str], sentence: str
) -> None:
    ids = [await a_service(alice, name) for name in names]
    await a_page(alice, *ids)
    update = {"description": "x", "publicIncidentUpdateDate": "2026-11-21T02:58:00Z"}
    await an_incident(alice, *ids, severity=severity, incidentUpdates=[update])

    assert sentence in (await site.get("/status/shop")).text


async def test_open_incidents_come_first_and_their_updates_newest_first(
    site: Site, alice: ApiUser
) -> None:
    service = await a_service(alice)
    await a_page(alice, service)
    at = {"publicIncidentUpdateDate": "2026-10-02T08:00:00Z"}
    old = await an_incident(
        alice, service, name="Old trouble", incidentUpdates=[{"description": "Old.", **at}]
    )
    await say(alice, old, "RESOLVED", publicIncidentUpdateDate="2026-10-02T09:30:00Z")
    site.pass_s(60)
    first = {"description": "First.", "publicIncidentUpdateDate": "2026-11-21T09:00:00Z"}
    new = await an_incident(alice, service, name="New trouble", incidentUpdates=[first])
    await say(
        alice,
        new,
        "IDENTIFIED",
        description="Second.",
        publicIncidentUpdateDate="2026-11-21T09:10:00Z",
    )

    text = (await site.get("/status/shop")).text

    order = ("New trouble", "Second.", "First.", "Past incidents", "October 2026", "Old trouble")
    assert list(order) == sorted(order, key=text.index)
    assert "2 Oct, 08:00 to 09:30 UTC (1 h 30 min)" in text


async def test_a_change_is_seen_at_once_and_nothing_is_sent_twice(
    site: Site, alice: ApiUser
) -> None:
    service = await a_service(alice)
    await a_page(alice, service)
    first = await site.get("/status/shop")
    etag = first.headers["etag"]

    assert "max-age=15" in first.headers["cache-control"]
    assert "stale-if-error" in first.headers["cache-control"]
    site.pass_s(3600)
    assert (await site.get("/status/shop", if_none_match=etag)).status == 304

    await alice.put(f"{SERVICES}/{service}", {"name": "Payments"})
    changed = await site.get("/status/shop", if_none_match=etag)
    assert changed.status == 200
    assert "Payments" in changed.text


async def test_what_is_to_come_is_shown_once_it_is_due(site: Site, alice: ApiUser) -> None:
    service = await a_service(alice)
    await a_page(alice, service)
    update = {"description": "Soon.", "publicIncidentUpdateDate": "2026-11-21T10:01:00Z"}
    await an_incident(alice, service, incidentUpdates=[update])

    assert "Soon." not in (await site.get("/status/shop")).text
    site.pass_s(61)
    assert "Soon." in (await site.get("/status/shop")).text


async def test_a_page_has_no_script_and_its_policy_allows_none(site: Site, alice: ApiUser) -> None:
    await a_page(alice, logo="https://cdn.example/logo.png")

    answer = await site.get("/status/shop")

    policy = answer.headers["content-security-policy"]
    assert "script" not in policy
    assert "default-src 'none'" in policy
    assert "img-src 'self' data: https://cdn.example;" in policy
    assert "<script" not in answer.text
    assert " style=" not in answer.text
    assert "set-cookie" not in answer.headers


async def test_a_page_of_a_dozen_services_and_forty_incidents_weighs_little(
    site: Site, alice: ApiUser
) -> None:
    ids = [await a_service(alice, f"Service {number}") for number in range(12)]
    await a_page(alice, *ids, logo=LOGO)
    for number in range(40):
        day = f"2026-{11 - number % 2}-{number // 2 + 1:02}"
        updates = [
            {
                "status": status,
                "description": f"{number} {status}: " + "What we found and what we do. " * 6,
                "publicIncidentUpdateDate": f"{day}T0{hour}:{number:02}:00Z",
            }
            for hour, status in enumerate(("INVESTIGATING", "IDENTIFIED", "RESOLVED"))
        ]
        await an_incident(alice, ids[number % 12], incidentUpdates=updates)

    text = (await site.get("/status/shop")).text
    sheet = text.partition('rel="stylesheet" href="')[2].partition('"')[0]
    parts = [text, (await site.get(sheet)).text, (await site.get("/status/shop/icon.svg")).text]

    assert text.count("<details") == 40
    assert sum(len(gzip.compress(part.encode(), 6)) for part in parts) <= 40_000


async def test_the_style_sheet_is_kept_for_ever_under_an_address_of_its_content(
    site: Site, alice: ApiUser
) -> None:
    await a_page(alice)
    before = (await site.get("/status/shop")).text
    path = before.partition('rel="stylesheet" href="')[2].partition('"')[0]

    assert "immutable" in (await site.get(path)).headers["cache-control"]
    assert "immutable" not in (await site.get("/status/shop/theme.css")).headers["cache-control"]

    (page,) = (await alice.get(PAGES)).body["entries"]
    colours = dict.fromkeys(
        (
            *("bodyBackgroundColor", "headerBackgroundColor", "headerFontColor", "titleFontColor"),
            *("bodyFontColor", "bodyFontColorMuted", "navigationFontColor", "linkFontColor"),
            *("cardBackgroundColor", "borderColor"),
            *("primaryButtonBackgroundColor", "primaryButtonFontColor"),
        ),
        "#123456",
    )
    themed = {"name": "Shop", "url": "shop", "cards": [], "defaultTheme": "DARK"}
    body = {**themed, "themeColors": {"light": colours, "dark": colours}}
    answer = await alice.put(f"{PAGES}/{page['id']}", body)
    assert answer.status == 200, answer.body

    after = (await site.get("/status/shop")).text
    assert path not in after
    assert 'data-theme="dark"' in after
    assert "#123456" in (await site.get("/status/shop/theme.css")).text


async def test_a_logo_that_was_sent_is_a_file_which_can_do_nothing(
    site: Site, alice: ApiUser
) -> None:
    await a_page(alice, logo=LOGO, favicon="data:image/png;base64,iVBORw==")

    logo = await site.get("/status/shop/logo.svg")

    assert (logo.status, logo.headers["content-type"]) == (200, "image/svg+xml")
    assert "sandbox" in logo.headers["content-security-policy"]
    assert logo.headers["x-content-type-options"] == "nosniff"
    assert (await site.get("/status/shop/favicon.png")).status == 200
    assert "data:image" not in (await site.get("/status/shop")).text


async def test_a_page_that_is_not_there_a_removed_one_and_a_private_one_look_the_same(
    site: Site, alice: ApiUser
) -> None:
    missing = await site.get("/status/shop")
    page = await a_page(alice)
    assert (await site.get("/status/shop")).status == 200
    await alice.delete(f"{PAGES}/{page['id']}")
    removed = await site.get("/status/shop")
    await a_page(alice, isPrivate=True)
    private = await site.get("/status/shop")

    assert {one.status for one in (missing, removed, private)} == {404}
    assert missing.text == removed.text == private.text
    assert "There is no status page here" in missing.text
    assert missing.headers["cache-control"] == "no-store"
    for file in ("feed.rss", "status.json", "icon.svg", "export.zip", "nothing", "index.htm"):
        assert (await site.get(f"/status/shop/{file}")).status == 404
    assert (await site.get("/status/NO%20SLUG%00")).status == 404


async def test_a_key_opens_a_private_page_and_the_cookie_is_of_that_page_alone(
    site: Site, alice: ApiUser
) -> None:
    page = await a_page(alice, isPrivate=True)
    key = page["keys"][0]["rawKey"]

    wrong = await site.ask("POST", "/status/shop/key", data={"key": "sp_wrong"}, headers={})
    assert wrong.status == 404
    assert "This key opens no page" in wrong.text

    right = await site.ask("POST", "/status/shop/key", data={"key": key}, headers={})
    assert (right.status, right.headers["location"]) == (303, "/status/shop")
    cookie = SimpleCookie(right.headers["set-cookie"])[KEY_COOKIE]
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == ("/status/shop", True, "lax")

    header = {"cookie": f"{KEY_COOKIE}={cookie.value}"}
    seen = await site.get("/status/shop", **header)
    assert (seen.status, seen.headers["cache-control"]) == (200, "private, no-cache")
    assert "noindex" in seen.text
    assert key not in seen.text
    assert (await site.get("/status/shop/feed.rss", authorization=f"Bearer {key}")).status == 200

    await alice.post(f"{PAGES}/{page['id']}/keys")
    assert (await site.get("/status/shop", **header)).status == 404


async def test_the_form_subscribes_an_address(site: Site, alice: ApiUser) -> None:
    page = await a_page(alice, await a_service(alice))
    assert 'action="/status/shop/subscribe"' in (await site.get("/status/shop")).text

    form = {"address": "ann@example.com"}
    answer = await site.ask("POST", "/status/shop/subscribe", data=form, headers={})

    assert answer.status == 202
    assert "Check your mail" in answer.text
    assert "on its way to ann@example.com" in answer.text
    found = (await alice.get(f"{PAGES}/{page['id']}/subscriptions")).body
    assert [(one["address"], one["status"]) for one in found] == [("ann@example.com", "PENDING")]


@pytest.mark.parametrize("address", ["", "nobody", "<script>@x", "a@b\r\nBcc: c@d.example"])
async def test_what_is_no_address_is_refused_in_words(
    site: Site, alice: ApiUser, address: str
) -> None:
    await a_page(alice)

    answer = await site.ask("POST", "/status/shop/subscribe", data={"address": address}, headers={})

    assert answer.status == 400
    assert "The address is " in answer.text
    assert "<bdi>Shop status</bdi>" in answer.text
    assert "<script>" not in answer.text


async def test_nobody_subscribes_through_a_private_page_without_its_key(
    site: Site, alice: ApiUser
) -> None:
    await a_page(alice, isPrivate=True)

    form = {"address": "ann@example.com"}
    answer = await site.ask("POST", "/status/shop/subscribe", data=form, headers={})

    assert answer.status == 404


async def test_the_page_as_json_is_what_the_api_says(site: Site, alice: ApiUser) -> None:
    service = await a_service(alice)
    await a_page(alice, service)
    await an_incident(alice, service, incidentUpdates=[_an_update()])

    mine = await site.get("/status/shop/status.json")
    api = await site.get("/status-pages/shop.json")

    assert json.loads(mine.text) == json.loads(api.text)
    assert mine.headers["access-control-allow-origin"] == "*"


def _an_update() -> dict[str, Any]:
    return {"description": "x", "publicIncidentUpdateDate": "2026-11-21T09:00:00Z"}


async def test_a_page_has_one_address(site: Site, alice: ApiUser) -> None:
    await a_page(alice)

    answer = await site.get("/status/shop/")

    assert (answer.status, answer.headers["location"]) == (308, "/status/shop")
