from typing import Any

import pytest

from tests.builders.status_pages import a_page
from tests.servers.public_api import ApiUser, PublicApi

PAGES = "/v1/status-pages"


def bulk(*addresses: str) -> dict[str, Any]:
    return {"subscriptions": [{"type": "EMAIL", "config": one} for one in addresses]}


async def test_subscriptions_are_made_listed_and_deleted(alice: ApiUser) -> None:
    path = f"{PAGES}/{(await a_page(alice))['id']}/subscriptions"
    made = await alice.post(f"{path}/bulk", bulk("ann@example.com", "ben@example.com"))
    assert (made.status, made.body) == (201, {"created": 2, "skipped": 0, "status": "PENDING"})
    listed = (await alice.get(path)).body
    assert [(one["address"], one["status"], one["type"]) for one in listed] == [
        ("ann@example.com", "PENDING", "EMAIL"),
        ("ben@example.com", "PENDING", "EMAIL"),
    ]
    assert listed[0].keys() == {"id", "type", "address", "status", "created_at", "updated_at"}
    assert (await alice.delete(f"{path}/{listed[0]['id']}")).status == 204
    assert (await alice.delete(f"{path}/{listed[0]['id']}")).status == 404
    assert [one["address"] for one in (await alice.get(path)).body] == ["ben@example.com"]


async def test_an_address_is_subscribed_once_to_a_page(alice: ApiUser) -> None:
    path = f"{PAGES}/{(await a_page(alice))['id']}/subscriptions"
    await alice.post(f"{path}/bulk", bulk("ann@example.com"))
    again = bulk("Ann@Example.com", "ben@example.com", "ben@example.com")
    made = await alice.post(f"{path}/bulk", again)
    assert made.body == {"created": 1, "skipped": 2, "status": "PENDING"}
    other = f"{PAGES}/{(await a_page(alice, url='other'))['id']}/subscriptions"
    assert (await alice.post(f"{other}/bulk", bulk("ann@example.com"))).body["created"] == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (bulk(), '"subscriptions" must not be empty'),
        (bulk(*["ann@example.com"] * 101), '"subscriptions" has 101 items'),
        (bulk("ann"), '"subscriptions[0].config" is no mail address'),
        ({"subscriptions": [{"type": "SMS", "config": "1"}]}, '"subscriptions[0].type" '),
    ],
)
async def test_what_cannot_be_subscribed_is_refused_in_a_sentence(
    alice: ApiUser, body: dict[str, Any], said: str
) -> None:
    path = f"{PAGES}/{(await a_page(alice))['id']}/subscriptions/bulk"
    answer = await alice.post(path, body)
    assert (answer.status, answer.body["message"][: len(said)]) == (400, said)


async def test_subscribers_of_alices_page_are_not_there_for_charlie(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    path = f"{PAGES}/{(await a_page(alice))['id']}/subscriptions"
    await alice.post(f"{path}/bulk", bulk("ann@example.com"))
    (one,) = (await alice.get(path)).body
    assert (await charlie.get(path)).status == 404
    assert (await charlie.post(f"{path}/bulk", bulk("eve@example.com"))).status == 404
    his = f"{PAGES}/{(await a_page(charlie, url='his'))['id']}/subscriptions"
    assert (await charlie.delete(f"{his}/{one['id']}")).status == 404
