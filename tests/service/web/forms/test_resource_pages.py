"""The pages on which a resource is added, changed and deleted."""

import re

import pytest
from playwright.async_api import Page, expect

from service.accounts.model import Role
from tests.servers.public_api import PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.servers.web_forms import Pairs, form_pairs
from tests.service.web.conftest import WebUser, sign_in

_URL = "/checks/new?kind=URL"


async def a_check(api: PublicApi, **fields: object) -> str:
    """A stored URL monitor; its id."""
    body = {
        "name": "Shop",
        "request": {"url": "https://shop.example/"},
        "privateLocations": ["default"],
    }
    made = await api.alice.post("/v1/checks/url", {**body, **fields})
    assert made.status == 201, made.body
    return str(made.body["id"])


async def fill_in(web: WebUser, path: str, **fields: str) -> Pairs:
    """What a form sends in which these fields were filled in."""
    shown = dict(form_pairs((await web.get(path)).text))
    return Pairs(iter({**shown, **fields}.items()))


async def test_a_newcomer_sees_what_is_wrong_at_its_field_and_lands_at_the_check(
    api: PublicApi, page: Page
) -> None:
    complaints = collect_complaints(page)
    await page.goto("/checks/new")
    await page.get_by_role("link", name="URL monitor").click()
    await page.get_by_label("Name").first.fill("Shop")
    await page.get_by_label("URL").fill("htp://shop.example")
    await page.get_by_role("button", name="Add").first.click()
    await page.get_by_label("Source").select_option(label="Status code")
    await page.get_by_label("Comparison").select_option(label="Equals")
    await page.get_by_label("Target").fill("200")
    await page.get_by_role("button", name="Create").click()

    url = page.get_by_label("URL")
    await expect(url).to_be_focused()
    await expect(url).to_have_value("htp://shop.example")
    await expect(url).to_have_accessible_description(re.compile("^URL .*http:// or https://"))
    await expect(page.get_by_label("Target")).to_have_value("200")

    await url.fill("https://shop.example/")
    await page.get_by_role("button", name="Create").click()
    await page.wait_for_url(re.compile(r"/checks/[0-9a-f-]{36}$"), timeout=10_000)
    made = await api.alice.get(f"/v1/checks/{page.url.rpartition('/')[2]}")
    assert made.body["privateLocations"] == ["default"]
    assert made.body["request"]["assertions"][0]["target"] == "200"
    assert [one for one in complaints if "404" not in one and "422" not in one] == []


async def test_a_form_that_is_sent_twice_makes_one(api: PublicApi, web: WebUser) -> None:
    data = await fill_in(web, _URL, **{"name": "Shop", "request.url": "https://shop.example/"})
    first, second = await web.post(_URL, data), await web.post(_URL, data)
    assert first.status == second.status == 303
    assert first.headers["location"] == second.headers["location"]
    assert len((await api.alice.get("/v1/checks")).body) == 1


async def test_what_somebody_else_changed_meanwhile_is_replaced_only_knowingly(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api)
    data = await fill_in(web, f"/checks/{check}/edit", name="Mine")
    stored = (await api.alice.get(f"/v1/checks/{check}")).body
    await api.alice.put(f"/v1/checks/url/{check}", {**stored, "name": "Theirs"})

    answer = await web.post(f"/checks/{check}/edit", data)
    assert (answer.status, answer.headers["cache-control"]) == (422, "no-store")
    assert "Somebody else changed this" in answer.text
    assert (await api.alice.get(f"/v1/checks/{check}")).body["name"] == "Theirs"

    again = Pairs(form_pairs(answer.text))
    assert (await web.post(f"/checks/{check}/edit", again)).status == 303
    assert (await api.alice.get(f"/v1/checks/{check}")).body["name"] == "Mine"


async def test_a_problem_of_a_row_stands_in_it_and_one_of_a_fold_opens_it(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api)
    path = f"/checks/{check}/edit"
    wrong = {"environmentVariables[0].key": "a b", "request.connectTo": "nowhere"}
    answer = await web.post(path, await fill_in(web, path, **wrong))
    assert answer.status == 422
    assert (
        'id="h-environmentVariables[0].key"><span class="problem">Key must consist' in answer.text
    )
    more = answer.text.partition("<h2>More</h2>")[0].rpartition("<details")[2]
    assert more.startswith(' class="part" open>')


async def test_whoever_may_only_read_sees_values_and_why(api: PublicApi) -> None:
    check = await a_check(api, tags=["team:checkout"])
    reader = await api.colleague("Reader", role=Role.READ_ONLY)
    web = await sign_in(api, reader.secrets.api_key)
    shown = await web.get(f"/checks/{check}/edit")
    assert "team:checkout" in shown.text
    assert "may only read" in shown.text
    assert 'name="name"' not in shown.text
    answer = await web.post(f"/checks/{check}/edit", {"name": "Mine"})
    assert answer.status == 422
    assert (await api.alice.get(f"/v1/checks/{check}")).body["name"] == "Shop"


async def test_a_check_is_deleted_when_its_name_is_typed(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api)
    path = f"/checks/{check}/delete"
    assert "Shop" in (await web.get(path)).text
    assert (await web.post(path, {"#name": "shop"})).status == 422
    assert (await web.post(path, {"#name": "Shop"})).headers["location"] == "/"
    assert (await api.alice.get(f"/v1/checks/{check}")).status == 404


async def test_a_group_is_deleted_when_its_name_is_typed(api: PublicApi, web: WebUser) -> None:
    group = (await api.alice.post("/v2/check-groups", {"name": "Shop"})).body["id"]
    path = f"/groups/{group}/delete"
    assert (await web.post(path, {"#name": "shop"})).status == 422
    assert (await api.alice.get(f"/v1/check-groups/{group}")).status == 200
    assert (await web.post(path, {"#name": "Shop"})).headers["location"] == "/groups"
    assert (await api.alice.get(f"/v1/check-groups/{group}")).status == 404


async def test_what_is_not_there_has_no_form(web: WebUser) -> None:
    assert (await web.get("/checks/nothing/edit")).status == 404
    assert (await web.post("/checks/new?kind=NONE", {"name": "a"})).status == 404


_HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>\N{RIGHT-TO-LEFT OVERRIDE}'


async def test_what_people_and_targets_wrote_stays_text(api: PublicApi, page: Page) -> None:
    complaints = collect_complaints(page)
    group = await api.alice.post("/v2/check-groups", {"name": _HOSTILE})
    check = await a_check(api, name=_HOSTILE, tags=[_HOSTILE], description=_HOSTILE)
    await page.goto(f"/checks/{check}/edit")
    await expect(page.get_by_label("Name").first).to_have_value(_HOSTILE)
    for path in ("/groups", f"/groups/{group.body['id']}/delete"):
        await page.goto(path)
        await expect(page.get_by_text(_HOSTILE).first).to_be_visible()
    assert complaints == []


@pytest.mark.parametrize("width", [390, 1440])
async def test_everybody_can_use_the_forms(api: PublicApi, page: Page, width: int) -> None:
    check = await a_check(api)
    await page.set_viewport_size({"width": width, "height": 900})
    for path in ("/checks/new", f"/checks/{check}/delete", "/checks/new?kind=API"):
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            await page.goto(path)
            await page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            for add in await page.get_by_role("button", name="Add").all():
                await add.click()
            assert await find_violations(page) == []
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert await page.evaluate(overflow) <= 0
