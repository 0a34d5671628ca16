"""Several checks are run, paused and muted at once."""

import json
from typing import Any

from playwright.async_api import Page, expect

from service.accounts.model import Role
from tests.builders.stored_results import failed, store
from tests.servers.public_api import PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebAnswer, WebUser, sign_in
from tests.service.web.overview.test_overview_page import a_check, now_ms


async def some(api: PublicApi) -> list[str]:
    """The ids of some checks."""
    return [(await a_check(api.alice, name=name))["id"] for name in ("A", "B", "C")]


async def act(web: WebUser, done: str, check_ids: list[str], **more: str) -> WebAnswer:
    """Send the form, as a browser does that runs no script."""
    fields = [("do", done), *(("check", one) for one in check_ids), *more.items()]
    return await web.ask("POST", "/overview/selected", data=[*fields, ("csrf", await web.token())])


async def stored(api: PublicApi, field: str) -> dict[str, Any]:
    """A field of all checks, by id."""
    return {one["id"]: one[field] for one in (await api.alice.get("/v1/checks")).body}


async def test_without_a_script_selected_checks_are_changed_and_the_list_is_shown_again(
    api: PublicApi, web: WebUser
) -> None:
    a, b, c = await some(api)
    assert (await web.get("/")).text.count('class="pick"') == 3

    paused = await act(web, "pause", [a, b], list="q=x&page=2")
    assert (paused.status, paused.headers["location"]) == (303, "/?q=x&page=2")
    assert await stored(api, "activated") == {a: False, b: False, c: True}
    resumed = await act(web, "resume", [a], home="/groups/7")
    assert resumed.headers["location"] == "/groups/7"
    assert (await act(web, "mute", [b, c], home="//evil.example")).headers["location"] == "/"
    assert await stored(api, "muted") == {a: False, b: True, c: True}
    await act(web, "unmute", [b, c])
    assert not any((await stored(api, "muted")).values())


async def test_selected_checks_are_run_together(api: PublicApi, web: WebUser) -> None:
    a, b, _ = await some(api)
    assert (await act(web, "run", [a, b])).status == 303
    sessions = await api.database.read(
        lambda c: c.exec_driver_sql("SELECT check_id FROM session").scalars().all()
    )
    assert set(sessions) == {a, b}


async def test_what_cannot_be_done_is_said(api: PublicApi, web: WebUser) -> None:
    a, *_ = await some(api)
    theirs = (await a_check(await api.another_user("Bob"), name="Theirs"))["id"]

    mixed = await act(web, "pause", [a, theirs])

    assert mixed.status == 422
    assert "1 check paused. 1 check not paused:" in mixed.text
    assert (await stored(api, "activated"))[a] is False
    for done, ids in (("pause", []), ("run", []), ("pause", [str(n) for n in range(501)])):
        assert (await act(web, done, ids)).status == 422
    assert (await act(web, "delete", [a])).status == 400


async def test_whoever_may_only_read_selects_nothing_and_changes_nothing(api: PublicApi) -> None:
    a, *_ = await some(api)
    reader = await sign_in(api, (await api.colleague("Eve", role=Role.READ_ONLY)).secrets.api_key)

    assert 'class="pick"' not in (await reader.get("/")).text
    for done in ("pause", "run"):
        assert "READ_ONLY" in (await act(reader, done, [a])).text
    assert (await stored(api, "activated"))[a] is True


async def test_checks_are_selected_by_keys_and_stay_so_while_the_list_is_renewed(
    api: PublicApi, page: Page
) -> None:
    a, b, c = await some(api)
    complaints = collect_complaints(page)
    async with page.expect_response(lambda answer: answer.url.endswith("/live")):
        await page.goto("/")
    bar = page.get_by_role("form", name="Selected checks")
    await expect(bar).to_be_hidden()
    for _ in range(2):
        await page.keyboard.press("j")
        await page.keyboard.press("x")
    await expect(bar).to_contain_text("2 selected")
    for scheme in ("light", "dark"):
        for width in (390, 1440):
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": width, "height": 900})
            assert await find_violations(page) == []

    check = next(one for one in (await api.alice.get("/v1/checks")).body if one["id"] == c)
    await store(api, check, failed("It answered 503."), started_ms=await now_ms(api))
    await expect(page.get_by_text("It answered 503.")).to_be_visible()
    await expect(page.get_by_role("checkbox", name="Select A")).to_be_checked()
    await expect(page.get_by_role("checkbox", name="Select C")).not_to_be_checked()
    await bar.get_by_role("button", name="Pause").click()

    await expect(page.get_by_text("2 checks paused.")).to_be_visible()
    await expect(bar).to_be_hidden()
    assert await stored(api, "activated") == {a: False, b: False, c: True}
    assert complaints == []


async def test_a_script_is_told_in_one_line(api: PublicApi, web: WebUser) -> None:
    a, *_ = await some(api)
    answer = await web.ask(
        "POST",
        "/overview/selected",
        data=[("do", "pause"), ("check", a), ("csrf", await web.token())],
        headers={"accept": "application/json"},
    )
    assert json.loads(answer.text) == {"line": "1 check paused.", "isRefused": False}


async def test_all_shown_checks_are_selected_at_once(api: PublicApi, page: Page) -> None:
    await some(api)
    await page.goto("/")
    await page.get_by_label("Select B").check()
    await page.get_by_role("button", name="Select all shown").click()
    await expect(page.get_by_text("3 selected")).to_be_visible()
    await page.get_by_role("button", name="Mute", exact=True).click()
    await expect(page.get_by_text("3 checks muted.")).to_be_visible()
    assert all((await stored(api, "muted")).values())
