"""Subscribing, confirming and unsubscribing by people without a key."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, select

from service.accounts.keys import Pepper
from service.db.tables.status_pages import status_mail, status_subscription
from service.http.rate_limits.rate_limit import Allowance, RateClass, RateLimits
from service.subscriptions.actions import forget_unconfirmed
from service.subscriptions.rules import make_signature
from tests.builders.status_pages import PAGES, a_page
from tests.builders.subscribers import ANN, Visitor, a_visitor
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.smtp import serve_smtp


@pytest.fixture
async def visitor(api: PublicApi, alice: ApiUser) -> AsyncIterator[Visitor]:
    """Somebody who knows the page `shop`."""
    await a_page(alice)
    async with serve_smtp() as box:
        yield a_visitor(api, box)


async def subscribers(visitor: Visitor) -> list[tuple[str, str]]:
    (page,) = (await visitor.api.alice.get(PAGES)).body["entries"]
    listed = (await visitor.api.alice.get(f"{PAGES}/{page['id']}/subscriptions")).body
    return [(one["address"], one["status"]) for one in listed]


async def test_a_link_in_a_mail_confirms_and_says_so_when_it_is_opened_again(
    visitor: Visitor,
) -> None:
    answer = await visitor.subscribe()
    assert (answer.status, answer.body["message"]) == (
        202,
        "A mail with a link was sent to the address, unless it had one before.",
    )
    assert await subscribers(visitor) == [(ANN, "PENDING")]
    assert await visitor.send() == 1
    (mail,) = visitor.box.mails
    assert mail["Subject"] == "Confirm your subscription to Shop status"
    # Programs that look for bad links open them; only the button confirms.
    looked = await visitor.ask("GET", visitor.link())
    assert (looked.status, "<form" in looked.body) == (200, True)
    assert "form-action 'self'" in looked.headers["content-security-policy"]
    assert await subscribers(visitor) == [(ANN, "PENDING")]
    assert (await visitor.ask("POST", visitor.link())).status == 200
    assert await subscribers(visitor) == [(ANN, "VERIFIED")]
    for method in ("GET", "POST"):
        again = await visitor.ask(method, visitor.link())
        assert again.status == 200
        assert f"{ANN} gets a mail when there is news" in again.body
        assert "<form" not in again.body
    assert await subscribers(visitor) == [(ANN, "VERIFIED")]


async def test_the_pages_behind_a_link_look_like_the_status_page_without_a_script(
    visitor: Visitor,
) -> None:
    await visitor.subscribe()
    await visitor.send()
    for method in ("GET", "POST"):
        page = await visitor.ask(method, visitor.link())
        assert 'href="/status/shop/theme.css' in page.body
        assert "<bdi>Shop status</bdi>" in page.body
        assert "<script" not in page.body
        assert "script-src" not in page.headers["content-security-policy"]
        assert page.headers["referrer-policy"] == "no-referrer"


async def test_the_database_holds_no_token_that_opens_anything(visitor: Visitor) -> None:
    await visitor.subscribe()

    def stored(connection: Connection) -> str:
        tables = (status_subscription, status_mail)
        rows = [connection.execute(select(table)).all() for table in tables]
        return str([[bytes(v) if isinstance(v, bytes) else v for v in r] for t in rows for r in t])

    before = await visitor.api.database.read(stored)
    await visitor.send()
    assert visitor.link().rpartition("/")[2] not in before


async def test_a_link_runs_out_and_who_has_not_confirmed_is_forgotten(visitor: Visitor) -> None:
    await visitor.subscribe()
    await visitor.send()
    visitor.clock.pass_s(7 * 86_400 + 1)
    assert (await visitor.ask("POST", visitor.link())).status == 404
    now_ms = visitor.clock.now
    forget = lambda c: forget_unconfirmed(c, now_ms=now_ms)  # noqa: E731 - one call
    assert await visitor.api.database.write(forget) == 1
    assert await subscribers(visitor) == []


async def test_who_is_confirmed_is_not_forgotten(visitor: Visitor) -> None:
    await visitor.confirmed()
    now_ms = visitor.clock.now + 10**12
    forget = lambda c: forget_unconfirmed(c, now_ms=now_ms)  # noqa: E731 - one call
    assert await visitor.api.database.write(forget) == 0


async def test_nobody_learns_who_is_subscribed(visitor: Visitor) -> None:
    first = await visitor.subscribe()
    waiting = await visitor.subscribe("ANN@example.com")
    await visitor.send()
    await visitor.ask("POST", visitor.link())
    confirmed = await visitor.subscribe()
    seen = {(one.status, str(one.body)) for one in (first, waiting, confirmed)}
    assert len(seen) == 1
    assert await visitor.send() == 0
    assert len(visitor.box.mails) == 1


async def test_another_link_comes_after_ten_minutes_and_ends_the_first_one(
    visitor: Visitor,
) -> None:
    await visitor.subscribe()
    await visitor.send()
    first = visitor.link()
    visitor.clock.pass_s(599)
    await visitor.subscribe()
    assert await visitor.send() == 0
    visitor.clock.pass_s(1)
    await visitor.subscribe()
    assert await visitor.send() == 1
    assert (await visitor.ask("POST", first)).status == 404
    assert (await visitor.ask("POST", visitor.link())).status == 200


async def test_a_form_subscribes_as_well(visitor: Visitor) -> None:
    path = "/status-pages/shop/subscriptions"
    assert (await visitor.ask("POST", path, data={"address": f" {ANN} "})).status == 202
    assert await subscribers(visitor) == [(ANN, "PENDING")]


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        ({"json": {"address": "ann"}}, 400, '"address" is ann, which is no mail address'),
        ({"json": {"address": "a@b\r\nBcc: e@x.test"}}, 400, '"address" is '),
        ({"json": {}}, 400, '"address" is missing.'),
        ({"json": []}, 400, "The body must be as in"),
        ({"data": b"\xff"}, 400, "The body must be as in"),
        ({"data": b"x" * 5000}, 413, "The body is too large; use at most 4096 bytes."),
    ],
)
async def test_what_is_no_address_is_refused(
    visitor: Visitor, sent: dict[str, Any], status: int, said: str
) -> None:
    answer = await visitor.ask("POST", "/status-pages/shop/subscriptions", **sent)
    assert (answer.status, answer.body["message"][: len(said)]) == (status, said)
    assert await subscribers(visitor) == []


async def test_a_private_page_takes_subscriptions_with_its_key_alone(
    visitor: Visitor, alice: ApiUser
) -> None:
    (page,) = (await alice.get(PAGES)).body["entries"]
    changed = (await alice.put(f"{PAGES}/{page['id']}", {**page, "isPrivate": True})).body
    assert (await visitor.subscribe()).status == 404
    headers = {"authorization": f"Bearer {changed['keys'][0]['rawKey']}"}
    assert (await visitor.subscribe(headers=headers)).status == 202


async def test_a_service_without_a_mail_server_says_so(visitor: Visitor) -> None:
    visitor.api.app.state.backend = visitor.api.backend
    answer = await visitor.subscribe()
    assert (answer.status, answer.body["message"]) == (
        409,
        (
            "This service sends no mails, so nobody can subscribe; its operator sets SMTP_URL and"
            " SERVICE_PUBLIC_URL."
        ),
    )


async def test_who_subscribes_too_often_waits(visitor: Visitor) -> None:
    allowances = {RateClass.SUBSCRIPTIONS: Allowance(2, 3600)}
    limits = RateLimits(monotonic=visitor.api.backend.monotonic, allowances=allowances)
    state = visitor.api.app.state
    state.backend = replace(state.backend, limits=limits)
    answers = [await visitor.subscribe(f"a{order}@example.com") for order in range(3)]
    assert [one.status for one in answers] == [202, 202, 429]
    assert int(answers[-1].headers["retry-after"]) > 1000


async def test_a_click_ends_a_subscription_and_a_second_one_is_no_fault(visitor: Visitor) -> None:
    await visitor.confirmed()
    (subscription_id,) = await visitor.api.database.read(
        lambda c: c.execute(select(status_subscription.c.id)).scalars().all()
    )
    signature = make_signature(visitor.api.backend.pepper, subscription_id)
    path = f"/status-subscriptions/unsubscribe/{subscription_id}/{signature}"
    assert "<form" in (await visitor.ask("GET", path)).body
    assert len(await subscribers(visitor)) == 1
    one_click = {"data": {"List-Unsubscribe": "One-Click"}}
    for _ in "12":
        assert (await visitor.ask("POST", path, **one_click)).status == 200
        assert await subscribers(visitor) == []


async def test_nobody_ends_the_subscription_of_another(visitor: Visitor) -> None:
    await visitor.confirmed()
    (subscription_id,) = await visitor.api.database.read(
        lambda c: c.execute(select(status_subscription.c.id)).scalars().all()
    )
    for signature in ("x", make_signature(Pepper(b"guessed"), subscription_id)):
        path = f"/status-subscriptions/unsubscribe/{subscription_id}/{signature}"
        assert (await visitor.ask("POST", path)).status == 404
    assert await subscribers(visitor) == [(ANN, "VERIFIED")]
