"""The form of a channel: whose alerts it gets, by name."""

from typing import Any

from playwright.async_api import Page

from tests.builders.check_bodies import check_body
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.web_browser import find_violations
from tests.servers.web_forms import Pairs, form_pairs
from tests.service.web.conftest import WebUser


async def a_check(user: ApiUser, name: str) -> str:
    made = await user.post("/v1/checks/url", check_body("url", name=name))
    assert made.status == 201, made.body
    return str(made.body["id"])


async def a_channel(user: ApiUser, *check_ids: str) -> int:
    subscriptions = [{"checkId": one, "activated": True} for one in check_ids]
    body = {"type": "EMAIL", "config": {"address": "ops@shop.example"}}
    made = await user.post("/v1/alert-channels", {**body, "subscriptions": subscriptions})
    assert made.status == 201, made.body
    return int(made.body["id"])


async def subscriptions_of(user: ApiUser, channel: int) -> list[tuple[Any, Any, bool]]:
    found = (await user.get(f"/v1/alert-channels/{channel}")).body["subscriptions"]
    return [(one["checkId"], one["groupId"], one["activated"]) for one in found]


async def test_a_subscription_is_named_and_another_is_added_by_a_name_without_a_script(
    api: PublicApi, web: WebUser
) -> None:
    first, second = await a_check(api.alice, "Checkout"), await a_check(api.alice, "Search")
    group = (await api.alice.post("/v2/check-groups", {"name": "Shop"})).body["id"]
    channel = await a_channel(api.alice, first)
    path = f"/channels/{channel}/edit"

    text = (await web.get(path)).text
    pairs = list(form_pairs(text))
    typed = {
        "subscriptions[1].checkId": "Search",
        "subscriptions[2].groupId": "Shop",
    }
    sent = [(name, typed.get(name, value)) for name, value in pairs]
    answer = await web.post(path, Pairs(iter(sent)))

    assert "<bdi>Checkout</bdi>" in text
    assert "<select" not in text
    assert answer.status == 303
    assert await subscriptions_of(api.alice, channel) == [
        (first, None, True),
        (second, None, True),
        (None, group, True),
    ]


async def test_a_name_that_nothing_has_is_refused_and_stays_as_it_was_typed(
    api: PublicApi, web: WebUser
) -> None:
    channel = await a_channel(api.alice, await a_check(api.alice, "Checkout"))
    path = f"/channels/{channel}/edit"
    pairs = form_pairs((await web.get(path)).text)
    sent = [(n, "Serch" if n == "subscriptions[1].checkId" else v) for n, v in pairs]

    answer = await web.post(path, Pairs(iter(sent)))

    assert answer.status == 422
    assert 'value="Serch"' in answer.text
    assert "<bdi>Checkout</bdi>" in answer.text


async def test_checks_of_one_name_are_told_apart_where_one_is_chosen(
    api: PublicApi, web: WebUser
) -> None:
    ids = [await a_check(api.alice, "Checkout") for _ in range(2)]

    text = (await web.get("/channels/new?kind=EMAIL")).text

    for one in ids:
        assert f'<option value="Checkout ({one})">' in text


async def test_a_check_is_added_and_another_removed_by_somebody_with_a_browser(
    api: PublicApi, page: Page
) -> None:
    first, second = await a_check(api.alice, "Checkout"), await a_check(api.alice, "Search")
    channel = await a_channel(api.alice, first)
    await page.goto(f"/channels/{channel}/edit")
    rows = page.locator('[data-rows="subscriptions"]')
    await rows.get_by_role("button", name="Add").click()
    await rows.get_by_label("Check", exact=True).fill("Search")
    assert await find_violations(page) == []
    await rows.get_by_role("button", name="Remove").first.click()
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**/channels")

    assert await subscriptions_of(api.alice, channel) == [(second, None, True)]
