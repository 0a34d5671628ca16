"""The page of a group, and how groups stand in their list."""

from typing import Any

from playwright.async_api import Page, expect
from sqlalchemy import Engine, event

from tests.builders.stored_results import failed, passed, store
from tests.servers.public_api import PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser
from tests.service.web.overview.test_overview_page import HOSTILE, a_check, now_ms


async def a_group(api: PublicApi, name: str) -> int:
    made = await api.alice.post("/v2/check-groups", {"name": name})
    assert made.status == 201, made.body
    number: int = made.body["id"]
    return number


async def test_a_group_lists_how_each_of_its_checks_stands(api: PublicApi, web: WebUser) -> None:
    shop = await a_group(api, "Shop")
    at_ms = await now_ms(api)
    home = await a_check(api.alice, name="Home", groupId=shop)
    cart = await a_check(api.alice, "tcp", name="Cart", groupId=shop)
    await a_check(api.alice, name="Elsewhere")
    await store(api, home, passed(), started_ms=at_ms - 60_000)
    await store(api, cart, failed("It is closed."), started_ms=at_ms - 60_000)

    text = (await web.get(f"/groups/{shop}")).text

    head, _, rows = text.partition('<ul class="checks">')
    assert "1 failing" in head
    assert "1 passing" in head
    assert rows.index("Cart") < rows.index("Home")
    assert "It is closed." in rows
    assert '<span class="type">TCP</span>' in rows
    assert rows.count('<svg class="strip"') == 2
    assert "Elsewhere" not in text
    assert f'href="/groups/{shop}/edit"' in head


async def test_the_list_of_groups_counts_their_checks_and_names_the_worst_state(
    api: PublicApi, web: WebUser
) -> None:
    shop, idle = await a_group(api, "Shop"), await a_group(api, "Idle")
    at_ms = await now_ms(api)
    for name, outcome in (("Home", passed()), ("Cart", failed("It is closed."))):
        check = await a_check(api.alice, name=name, groupId=shop)
        await store(api, check, outcome, started_ms=at_ms - 60_000)

    text = (await web.get("/groups")).text

    row, _, rest = text.partition(f'href="/groups/{shop}"')[2].partition(f'href="/groups/{idle}"')
    assert "1 failing" in row
    assert 'data-label="Checks">2<' in row
    assert 'data-label="Checks">0<' in rest


async def test_a_group_without_checks_says_how_they_join_it(api: PublicApi, web: WebUser) -> None:
    text = (await web.get(f"/groups/{await a_group(api, 'Idle')}")).text
    assert "No check is in this group" in text
    assert 'href="/checks/new"' in text


async def test_the_checks_of_a_large_group_come_page_by_page(api: PublicApi, web: WebUser) -> None:
    shop = await a_group(api, "Shop")
    for number in range(101):
        await a_check(api.alice, name=f"Page {number:03}", groupId=shop)

    first = (await web.get(f"/groups/{shop}")).text
    second = (await web.get(f"/groups/{shop}?page=2")).text

    assert "Page 100" not in first
    assert f'href="/groups/{shop}?page=2"' in first
    assert "Page 100" in second


async def test_a_longer_list_of_checks_that_pass_takes_no_more_queries(
    api: PublicApi, web: WebUser
) -> None:
    shop = await a_group(api, "Shop")
    at_ms = await now_ms(api)
    asked: list[str] = []

    def note(*given: Any) -> None:
        asked.append(given[2])

    counts = []
    event.listen(Engine, "before_cursor_execute", note)
    try:
        for more in (2, 10):
            for number in range(more):
                check = await a_check(api.alice, name=f"Page {number}", groupId=shop)
                await store(api, check, passed(), started_ms=at_ms - 60_000)
            for path in ("/groups", f"/groups/{shop}"):
                asked.clear()
                await web.get(path)
                counts.append(len(asked))
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    assert counts[:2] == counts[2:]
    assert all(counts)


async def test_nobody_sees_the_groups_of_another_account(api: PublicApi, web: WebUser) -> None:
    bob = await api.another_user("Bob")
    made = await bob.post("/v2/check-groups", {"name": "Theirs"})
    for path in (str(made.body["id"]), "0", "x", "9" * 30):
        for page in ("", "/checks"):
            answer = await web.get(f"/groups/{path}{page}")
            assert answer.status == 404
            assert "Theirs" not in answer.text


async def test_a_group_stays_true_by_itself(api: PublicApi, page: Page) -> None:
    shop = await a_group(api, "Shop")
    check = await a_check(api.alice, name="Home", groupId=shop)
    complaints = collect_complaints(page)
    async with page.expect_response(lambda answer: answer.url.endswith("/live")):
        await page.goto(f"/groups/{shop}")

    await store(api, check, failed("It answered 503."), started_ms=await now_ms(api))

    await expect(page.get_by_text("It answered 503.")).to_be_visible()
    await expect(page.get_by_text("1 failing")).to_be_visible()
    assert complaints == []


async def test_a_group_is_for_everybody_whatever_people_wrote(api: PublicApi, page: Page) -> None:
    at_ms = await now_ms(api)
    shop = await a_group(api, HOSTILE[1])
    for text in HOSTILE:
        check = await a_check(api.alice, name=text, groupId=shop)
        await store(api, check, failed(text), started_ms=at_ms)
    complaints = collect_complaints(page)
    for width in (390, 1440):
        await page.set_viewport_size({"width": width, "height": 900})
        for path in (f"/groups/{shop}", "/groups"):
            await page.goto(path)
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                assert await find_violations(page) == []
            assert await page.evaluate("window.broken") is None
            assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert complaints == []
