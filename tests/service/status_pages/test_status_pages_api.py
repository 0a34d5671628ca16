from typing import Any

import pytest

from tests.builders.status_pages import (
    PAGES,
    SERVICES,
    a_page,
    a_service,
    an_incident,
    page_body,
    say,
)
from tests.servers.public_api import ApiUser

COLOURS = {
    **{f"{part}BackgroundColor": "#fff" for part in ("body", "header", "card", "primaryButton")},
    **{f"{part}FontColor": "rgb(1, 2, 3)" for part in ("header", "title", "body", "navigation")},
    **{f"{part}FontColor": "hsl(1 2% 3%)" for part in ("link", "primaryButton")},
    "bodyFontColorMuted": "grey",
    "borderColor": "#00000080",
}


async def test_a_page_is_made_read_changed_and_deleted(alice: ApiUser) -> None:
    checkout = await a_service(alice)
    sent = page_body(
        checkout,
        description="How the shop is.",
        customDomain="Status.Shop.example",
        logo="https://shop.example/logo.svg",
        redirectTo="https://shop.example",
        favicon="data:image/png;base64,AAAA",
        defaultTheme="DARK",
        themeColors={"light": COLOURS, "dark": COLOURS},
    )
    answer = await alice.post(PAGES, sent)
    assert answer.status == 201, answer.body
    made = answer.body
    (card,) = made["cards"]
    assert {name: made[name] for name in sent if name != "cards"} == {
        **{name: value for name, value in sent.items() if name != "cards"},
        "customDomain": "status.shop.example",
    }
    assert (card["name"], [one["id"] for one in card["services"]]) == ("Shop", [checkout])
    assert (made["accountId"], made["isPrivate"], made["keys"], made["incidents"]) == (
        alice.secrets.account_id,
        False,
        [],
        [],
    )
    path = f"{PAGES}/{made['id']}"
    assert (await alice.get(path)).body == made
    second = {"name": "Second", "services": []}
    body = {**made, "name": "New", "cards": [second, {**card, "name": "First"}]}
    changed = await alice.put(path, body)
    assert changed.status == 200, changed.body
    assert changed.body["name"] == "New"
    assert [one["name"] for one in changed.body["cards"]] == ["Second", "First"]
    assert changed.body["cards"][1]["id"] == card["id"]
    assert changed.body["cards"][1]["created_at"] == card["created_at"]
    bare = (await alice.put(path, {"name": "x", "cards": []})).body
    kept = {**changed.body, "name": "x", "cards": [], "updated_at": bare["updated_at"]}
    assert bare == kept
    assert (await alice.delete(path)).status == 204
    assert (await alice.get(path)).status == 404


async def test_pages_are_listed_oldest_first_with_a_cursor(alice: ApiUser) -> None:
    made = [(await a_page(alice, url=f"p{order}"))["id"] for order in range(3)]
    first = (await alice.get(f"{PAGES}?limit=2")).body
    second = (await alice.get(f"{PAGES}?nextId={first['nextId']}")).body
    assert [one["id"] for one in first["entries"] + second["entries"]] == made
    assert (first["length"], second["length"], second["nextId"]) == (2, 1, None)


async def test_a_page_shows_the_incidents_of_its_services(alice: ApiUser) -> None:
    shown, other = await a_service(alice), await a_service(alice, "Other")
    page = await a_page(alice, shown)
    incident = await an_incident(alice, shown, other)
    await an_incident(alice, other)
    read = (await alice.get(f"{PAGES}/{page['id']}")).body
    assert [one["id"] for one in read["incidents"]] == [incident["id"]]


async def test_addresses_and_domains_are_unique_in_the_installation(
    alice: ApiUser, charlie: ApiUser
) -> None:
    page = await a_page(alice, customDomain="status.example.com")
    taken = await charlie.post(PAGES, page_body())
    assert (taken.status, taken.body["message"]) == (
        409,
        "A status page with the url shop already exists; use another.",
    )
    body = page_body(url="other", customDomain="STATUS.example.com")
    taken = await charlie.post(PAGES, body)
    assert (taken.status, taken.body["message"]) == (
        409,
        "A status page at status.example.com already exists; use another domain.",
    )
    assert (await alice.put(f"{PAGES}/{page['id']}", page)).status == 200


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "My shop"}, '"url" must have 1 to 63 lower-case letters'),
        ({"url": "-shop"}, '"url" must have 1 to 63 lower-case letters'),
        ({"description": "x" * 501}, '"description" has 501 characters'),
        ({"defaultTheme": "BLUE"}, '"defaultTheme" is BLUE; use'),
        ({"customDomain": "https://x.example"}, '"customDomain" is no host name'),
        ({"customDomain": "10.0.0.15"}, '"customDomain" is no host name'),
        ({"redirectTo": "javascript:alert(1)"}, '"redirectTo" must begin with http:// or https://'),
        ({"logo": "javascript:alert(1)"}, '"logo" must begin with http://, https:// or data:image'),
        ({"cards": None}, '"cards" '),
        ({"cards": [{"services": []}]}, '"cards[0].name" is missing'),
        (
            {"cards": [{"name": "a", "services": [{"id": "none"}]}]},
            '"cards[0].services" is none, and there is no service of status pages with this id.',
        ),
        (
            {"themeColors": {"light": {**COLOURS, "borderColor": "red;}"}, "dark": COLOURS}},
            '"themeColors.light.borderColor" must be a colour',
        ),
    ],
)
async def test_what_cannot_be_a_page_is_refused_in_a_sentence(
    alice: ApiUser, changes: dict[str, Any], said: str
) -> None:
    answer = await alice.post(PAGES, {**page_body(), **changes})
    assert (answer.status, answer.body["message"][: len(said)]) == (400, said)


async def test_a_private_page_has_a_key_that_is_shown_once(alice: ApiUser) -> None:
    made = await a_page(alice, isPrivate=True)
    (key,) = made["keys"]
    assert key["rawKey"].startswith("sp_")
    assert key["maskedKey"] == f"sp_****{key['rawKey'][-4:]}"
    path = f"{PAGES}/{made['id']}"
    (shown,) = (await alice.get(path)).body["keys"]
    assert shown == {name: value for name, value in key.items() if name != "rawKey"}
    # Clients that do not know the field must not make the page public.
    kept = (await alice.put(path, page_body())).body
    assert (kept["isPrivate"], kept["keys"]) == (True, [shown])
    opened = (await alice.put(path, page_body(isPrivate=False))).body
    assert (opened["isPrivate"], opened["keys"]) == (False, [])


async def test_a_new_key_of_a_private_page_replaces_the_old_one(alice: ApiUser) -> None:
    made = await a_page(alice, isPrivate=True)
    path = f"{PAGES}/{made['id']}"
    answer = await alice.post(f"{path}/keys")
    assert answer.status == 201
    (key,) = answer.body["keys"]
    assert key["rawKey"] != made["keys"][0]["rawKey"]
    old, new = [
        await alice.get("/status-pages/shop.json", headers={"authorization": f"Bearer {raw}"})
        for raw in (made["keys"][0]["rawKey"], key["rawKey"])
    ]
    assert (old.status, new.status) == (404, 200)
    await alice.put(path, page_body(isPrivate=False))
    assert (await alice.post(f"{path}/keys")).status == 409


async def test_a_service_is_made_read_renamed_and_deleted(alice: ApiUser) -> None:
    made = await alice.post(SERVICES, {"name": "Checkout"})
    assert made.status == 200
    assert made.body == {
        "id": made.body["id"],
        "name": "Checkout",
        "accountId": alice.secrets.account_id,
        "created_at": made.body["created_at"],
        "updated_at": None,
    }
    path = f"{SERVICES}/{made.body['id']}"
    assert (await alice.get(path)).body == made.body
    renamed = await alice.put(path, {"name": "Pay"})
    assert (renamed.status, renamed.body["name"]) == (200, "Pay")
    assert renamed.body["updated_at"] is not None
    assert (await alice.delete(path)).status == 204
    assert (await alice.get(path)).status == 404
    assert (await alice.put(path, {"name": "Pay"})).status == 404


async def test_services_are_listed_with_a_cursor_or_all_at_once(alice: ApiUser) -> None:
    made = [await a_service(alice, f"s{order}") for order in range(4)]
    first = (await alice.get(f"{SERVICES}?limit=3")).body
    late = await a_service(alice, "late")
    second = (await alice.get(f"{SERVICES}?limit=3&nextId={first['nextId']}")).body
    assert [one["id"] for one in first["entries"] + second["entries"]] == [*made, late]
    whole = (await alice.get(f"{SERVICES}?limit=3&paginated=false")).body
    assert (whole["length"], whole["nextId"]) == (5, None)


async def test_a_service_stays_while_an_incident_touches_it(alice: ApiUser) -> None:
    service = await a_service(alice)
    page, incident = await a_page(alice, service), await an_incident(alice, service)
    refused = await alice.delete(f"{SERVICES}/{service}")
    assert (refused.status, refused.body["message"]) == (
        409,
        "The incident Orders fail touches the service Checkout; resolve it first.",
    )
    await say(alice, incident, "RESOLVED")
    assert (await alice.delete(f"{SERVICES}/{service}")).status == 204
    assert (await alice.get(f"{PAGES}/{page['id']}")).body["cards"][0]["services"] == []
    past = await alice.get(f"/v1/status-pages/incidents/{incident['id']}")
    assert past.body["services"] == []


async def test_a_card_cannot_show_alices_service_on_charlies_page(
    alice: ApiUser, charlie: ApiUser
) -> None:
    hers = await a_service(alice)
    assert (await charlie.post(PAGES, page_body(hers))).status == 400
    assert (await charlie.get(f"{SERVICES}/{hers}")).status == 404
    assert (await charlie.get(SERVICES)).body["entries"] == []


async def test_colours_that_are_left_out_are_the_usual_ones(alice: ApiUser) -> None:
    colours = {"light": {"linkFontColor": "#112233"}}
    made = await alice.post(PAGES, {**page_body(), "themeColors": colours})
    assert made.status == 201, made.body
    shown = made.body["themeColors"]
    assert (shown["light"]["linkFontColor"], shown["light"]["borderColor"]) == ("#112233", None)
    assert shown["dark"] is None
