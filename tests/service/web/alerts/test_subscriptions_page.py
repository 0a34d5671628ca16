"""Which checks and groups send to a channel, chosen by people."""

from typing import Any

from playwright.async_api import Page

from tests.builders.alert_channels import a_channel
from tests.builders.made_checks import made
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.web_browser import find_violations
from tests.servers.web_forms import Pairs, form_pairs
from tests.service.web.conftest import WebUser


async def subscribe(user: ApiUser, channel: int, **wanted: Any) -> None:
    path = f"/v1/alert-channels/{channel}/subscriptions"
    answer = await user.put(path, {"activated": True, **wanted})
    assert answer.status == 200, answer.body


async def subscriptions_of(user: ApiUser, channel: int) -> dict[Any, bool]:
    found = (await user.get(f"/v1/alert-channels/{channel}")).body["subscriptions"]
    return {one["checkId"] or one["groupId"]: one["activated"] for one in found}


async def test_a_new_channel_is_followed_by_the_offer_to_subscribe_all_checks(
    api: PublicApi, web: WebUser
) -> None:
    ids = [(await made(api.alice, name=name))["id"] for name in ("Shop", "Search")]
    new = await web.get("/channels/new?kind=EMAIL")
    pairs = [
        (name, "ops@shop.example" if name == "config.address" else value)
        for name, value in form_pairs(new.text)
    ]
    answer = await web.post("/channels/new?kind=EMAIL", Pairs(iter(pairs)))
    offer = answer.headers["location"]
    channel = int(offer.split("/")[2])

    assert offer == f"/channels/{channel}/senders?new=1"
    assert "No check sends to it yet" in (await web.get(offer)).text
    assert "No check sends to it" in (await web.get("/channels")).text
    answer = await web.post(f"/channels/{channel}/senders", {"all": "yes"})
    assert answer.status == 303
    assert await subscriptions_of(api.alice, channel) == dict.fromkeys(ids, True)
    assert "2 checks" in (await web.get("/channels")).text


async def test_only_what_was_changed_is_sent(api: PublicApi, web: WebUser) -> None:
    group = (await api.alice.post("/v2/check-groups", {"name": "All"})).body
    stays, by_group, goes, comes = [
        (await made(api.alice, name=name, **more))["id"]
        for name, more in (
            ("Stays", {}),
            ("By group", {"groupId": group["id"]}),
            ("Goes", {}),
            ("Comes", {}),
        )
    ]
    channel = await a_channel(api.alice)
    await subscribe(api.alice, channel, groupId=group["id"])
    for one in (stays, goes):
        await subscribe(api.alice, channel, checkId=one)
    path = f"/channels/{channel}/senders"
    text = (await web.get(path)).text
    ticks = [f"checkId:{stays}", f"checkId:{by_group}", f"groupId:{group['id']}"]
    kept = [(name, value) for name, value in form_pairs(text) if name != "on"]
    sent = [*kept, *(("on", one) for one in (*ticks, f"checkId:{comes}"))]

    answer = await web.post(path, Pairs(iter(sent)))

    assert "by the group All" in text
    assert answer.headers["location"].endswith("changed=2")
    assert await subscriptions_of(api.alice, channel) == {
        group["id"]: True,
        stays: True,
        goes: False,
        comes: True,
    }


async def test_what_is_searched_for_bounds_what_is_subscribed_at_once(
    api: PublicApi, web: WebUser
) -> None:
    shop, _ = [(await made(api.alice, name=name))["id"] for name in ("Shop", "Search")]
    channel = await a_channel(api.alice)

    await web.post(f"/channels/{channel}/senders?q=SHO", {"all": "yes"})

    assert await subscriptions_of(api.alice, channel) == {shop: True}
    assert "Nothing is found." in (await web.get(f"/channels/{channel}/senders?q=none")).text


async def test_of_hundreds_of_checks_a_page_has_a_few(api: PublicApi, web: WebUser) -> None:
    channel = await a_channel(api.alice)
    for number in range(60):
        await made(api.alice, name=f"Check {number}")

    text = (await web.get(f"/channels/{channel}/senders")).text

    assert text.count('name="row"') == 50
    assert "60 checks of 60" in text
    assert 'name="row"' not in (await web.get(f"/channels/{channel}/edit")).text


async def test_somebody_with_a_browser_chooses_checks(api: PublicApi, page: Page) -> None:
    check = await made(api.alice, name="Search")
    channel = await a_channel(api.alice)
    await page.goto(f"/channels/{channel}/senders")
    await page.get_by_label("Search names").fill("sea")
    await page.keyboard.press("Enter")
    await page.get_by_role("checkbox").check()
    assert await find_violations(page) == []
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**changed=1")

    assert await subscriptions_of(api.alice, channel) == {check["id"]: True}


async def test_the_numbers_of_senders_agree_and_a_sample_is_sent_from_the_page(
    api: PublicApi, web: WebUser
) -> None:
    group = (await api.alice.post("/v2/check-groups", {"name": "All"})).body
    for number in range(2):
        await made(api.alice, name=f"Shop {number}", groupId=group["id"])
    channel = await a_channel(api.alice)
    await subscribe(api.alice, channel, groupId=group["id"])
    path = f"/channels/{channel}/senders"

    text = (await web.get(path)).text
    tested = await web.post(f"{path}/test", {})

    assert "2 checks and 1 group send to it; there are 2 checks." in text
    assert "Unsubscribe all 2 checks and 1 group<" in text
    assert tested.status == 200
    assert "Test not delivered" in tested.text
    assert "2 checks and 1 group send to it" in tested.text
