"""`/projects` and the page of each project."""

import re
from typing import Any

from playwright.async_api import Page, expect
from sqlalchemy import Connection

from service.projects import actions
from tests.builders.projects import SHOP, await_end, body, deploy, every_type, resource, url_check
from tests.builders.web_users import a_user
from tests.servers.public_api import PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser, sign_in

GONE = "The service stopped while it deployed, and nothing was changed. Deploy again."
HOSTILE = (
    '<script>alert(1)</script>"><img src=x onerror=alert(1)>\N{RIGHT-TO-LEFT OVERRIDE}' + "W" * 80
)


async def begin(
    api: PublicApi, *, name: str = "shop", age_ms: int = 0, user_id: str | None = None
) -> None:
    """A deployment that has begun so long ago, and that no process makes."""

    def change(connection: Connection) -> None:
        now_ms = api.backend.clock.now_ms(connection) - age_ms
        account_id = api.alice.secrets.account_id
        actions.begin(connection, account_id, name, user_id=user_id, now_ms=now_ms)

    await api.database.write(change)


async def deploy_at_once(api: PublicApi, sent: dict[str, Any]) -> None:
    """A deployment that is awaited by the request itself, whatever the project is called."""
    answer = await api.alice.post("/next-v2/projects/deploy", sent)
    assert answer.status == 200, answer.body


def words(text: str) -> str:
    """What a page says, without its tags."""
    main = text.partition("<main")[2]
    return " ".join(re.sub(r"<[^>]+>", " ", main).split())


async def test_without_projects_the_page_has_the_commands_to_copy(
    api: PublicApi, web: WebUser
) -> None:
    shown = (await web.get("/projects")).text
    assert 'class="empty"' in shown
    assert f"export SERVICE_URL={api.url} API_KEY=cu_…\npicket apply checks" in shown
    assert f"CHECKLY_ACCOUNT_ID={api.alice.secrets.account_id}" in shown
    assert f"CHECKLY_MQTT_URL={api.url.replace('http', 'ws', 1)}" in shown
    assert "npx checkly deploy" in shown


async def test_a_project_is_listed_with_its_last_deployment_and_who_asked_for_it(
    api: PublicApi, web: WebUser
) -> None:
    await deploy(api.alice, body(url_check("home"), url_check("cart")))
    said = words((await web.get("/projects")).text)
    assert "Shop shop" in said
    assert "https://git.test/shop 2 " in said
    assert "by first start (cu_" in said
    assert "succeeded" in said


async def test_a_deployment_that_a_user_asked_for_has_the_name_of_the_user(
    api: PublicApi, web: WebUser
) -> None:
    user = await a_user(api)
    await begin(api, user_id=user.id)
    assert "by Ann" in words((await web.get("/projects/shop")).text)


async def test_resources_stand_by_type_and_lead_to_their_pages(
    api: PublicApi, web: WebUser
) -> None:
    await deploy(api.alice, every_type())
    shown = (await web.get("/projects/shop")).text
    found = {
        (one["type"], one["logicalId"]): one["physicalId"]
        for one in (await api.alice.get(SHOP)).body["resources"]
    }
    for kind, name, path in (
        ("check", "home", "/checks/{}"),
        ("check-group", "web", "/groups/{}"),
        ("private-location", "cellar", "/locations/{}"),
        ("alert-channel", "ops", "/channels/{}/edit"),
        ("maintenance-window", "sunday", "/maintenance/{}/edit"),
        ("status-page", "status", "/status-pages/{}"),
        ("status-page-service", "payments", "/services/{}/edit"),
    ):
        address = path.format(found[kind, name])
        assert f'href="{address}"' in shown, kind
        assert (await web.get(address)).status == 200, kind
    headings = re.findall(r"<h2>([^<]+) <span", shown)
    assert headings[:3] == ["Checks", "Groups", "Locations"]
    assert shown.index("Subscriptions of channels 2") < shown.rindex("ops-home")
    assert "src/<wbr>basket.<wbr>check" in shown


async def test_deployments_tell_what_they_did_and_why_they_failed(
    api: PublicApi, web: WebUser
) -> None:
    await deploy(api.alice, body(url_check("home"), url_check("cart")))
    await deploy(api.alice, body(url_check("home", name="Front")))
    await deploy(api.alice, body(url_check("home", frequency=7)))
    said = words((await web.get("/projects/shop")).text)
    failed, changed, made = (
        said.index("is 7; use one of"),
        said.index("1 updated, 1 deleted"),
        said.index("2 created"),
    )
    assert failed < changed < made, "newest first"
    assert 'check "home" (src/home.ts)' in said.replace("&#34;", '"')
    assert "updated check home" in said
    assert "deleted check cart" in said


async def test_one_that_goes_on_renews_itself_and_one_that_was_left_has_failed(
    api: PublicApi, web: WebUser
) -> None:
    await begin(api)
    shown = (await web.get("/projects/shop")).text
    assert "waits for its turn" in shown
    assert 'hx-trigger="load delay:2s"' in shown
    await begin(api, name="left", age_ms=actions.LEASE_MS)
    for path in ("/projects", "/projects/left"):
        said = (await web.get(path)).text
        assert GONE in said
        assert "hx-trigger" not in said


async def test_a_project_that_is_not_there_any_more_or_not_yet_is_said_as_such(
    api: PublicApi, web: WebUser
) -> None:
    await deploy(api.alice, body(url_check("home", frequency=7)))
    assert "no deployment of it has succeeded" in (await web.get("/projects/shop")).text
    assert "is 7; use one of" in words((await web.get("/projects")).text).replace("&#34;", "")
    await deploy(api.alice, body(url_check("home")))
    assert "Not deployed" not in (await web.get("/projects")).text
    await await_end(api.alice, (await api.alice.delete(SHOP)).body)
    assert "it was deleted" in (await web.get("/projects/shop")).text
    assert words((await web.get("/projects")).text).count("deleted") >= 1


async def test_what_somebody_deleted_by_hand_has_no_link(api: PublicApi, web: WebUser) -> None:
    await deploy(api.alice, body(url_check("home"), url_check("cart")))
    (home,) = [
        one["physicalId"]
        for one in (await api.alice.get(SHOP)).body["resources"]
        if one["logicalId"] == "home"
    ]
    assert (await api.alice.delete(f"/v1/checks/{home}")).status == 204
    shown = (await web.get("/projects/shop")).text
    assert home not in shown
    assert shown.count("deleted by hand; the next deployment makes it again") == 1


async def test_a_type_with_many_resources_has_pages_of_its_own(
    api: PublicApi, web: WebUser
) -> None:
    await deploy(api.alice, body(*[url_check(f"c{number:03}") for number in range(101)]))
    whole = (await web.get("/projects/shop")).text
    assert "C099" in whole
    assert "C100" not in whole
    assert 'href="/projects/shop?type=check"' in whole
    second = (await web.get("/projects/shop?type=check&page=2")).text
    assert "C100" in second
    assert "C099" not in second
    assert "<h2>Deployments" not in second


async def test_many_deployments_have_pages(api: PublicApi, web: WebUser) -> None:
    for _ in range(21):
        await deploy(api.alice, body())
    assert (await web.get("/projects/shop")).text.count(">succeeded<") == 20
    second = (await web.get("/projects/shop?page=2")).text
    assert second.count(">succeeded<") == 1


async def test_the_id_of_a_project_may_have_any_sign(api: PublicApi, web: WebUser) -> None:
    name = "team/shop ?#%2F&"
    sent = body(url_check("home"))
    await deploy_at_once(api, {**sent, "project": {"logicalId": name, "name": "Shop"}})
    check = (await api.alice.get("/v1/checks")).body[0]["id"]
    listed = (await web.get("/projects")).text
    on_check = (await web.get(f"/checks/{check}")).text
    for text in (listed, on_check):
        path = re.findall(r'href="(/projects/[^"]+)"', text)[0]
        assert "<bdi>Shop</bdi>" in (await web.get(path)).text


async def test_what_a_project_owns_says_so_on_its_page_and_its_form(
    api: PublicApi, web: WebUser
) -> None:
    await deploy(api.alice, every_type())
    has = {
        one["logicalId"]: one["physicalId"] for one in (await api.alice.get(SHOP)).body["resources"]
    }
    said = words((await web.get(f"/checks/{has['home']}")).text)
    assert "Kept as code in project Shop" in said
    for path in (
        f"/checks/{has['home']}/edit",
        f"/groups/{has['web']}/edit",
        f"/channels/{has['ops']}/edit",
        f"/maintenance/{has['sunday']}/edit",
        f"/status-pages/{has['status']}/edit",
        f"/services/{has['payments']}/edit",
        f"/services/{has['site']}/edit",
    ):
        shown = await web.get(path)
        assert "the next deployment overwrites changes made here" in shown.text, path
    refused = await web.post(f"/checks/{has['home']}/edit", {"name": ""})
    assert (refused.status, "the next deployment" in refused.text) == (422, True)


async def test_what_no_project_owns_says_nothing_of_one(api: PublicApi, web: WebUser) -> None:
    made = await api.alice.post("/v1/checks/url", url_check("alone")["payload"])
    path = f"/checks/{made.body['id']}"
    assert "Kept as code" not in (await web.get(path)).text
    assert "Kept as code" not in (await web.get(f"{path}/edit")).text


async def test_another_account_sees_nothing_of_a_project(api: PublicApi) -> None:
    await deploy(api.alice, body(url_check("home")))
    await begin(api, name="left", age_ms=actions.LEASE_MS)
    charlie = await api.another_user("Charlie")
    web = await sign_in(api, charlie.secrets.api_key)
    listed = (await web.get("/projects")).text
    assert 'class="empty"' in listed
    assert "shop" not in words(listed).lower().replace("shop.", "")
    for name in ("shop", "left"):
        assert (await web.get(f"/projects/{name}")).status == 404
    (own,) = (await api.alice.get("/v1/checks")).body
    assert (await web.get(f"/checks/{own['id']}")).status == 404


async def test_names_of_others_with_the_same_id_stay_apart(api: PublicApi) -> None:
    await deploy(api.alice, body(url_check("home", name="Hers")))
    charlie = await api.another_user("Charlie")
    await deploy(charlie, body(url_check("cart", name="His")))
    web = await sign_in(api, charlie.secrets.api_key)
    shown = (await web.get("/projects/shop")).text
    assert "His" in shown
    assert "Hers" not in shown
    assert shown.count(">succeeded<") == 1


async def test_projects_are_for_everybody_whatever_people_wrote(api: PublicApi, page: Page) -> None:
    sent = body(
        url_check("home", name=HOSTILE),
        resource("check-group", HOSTILE[:100], {"name": HOSTILE, "v": 2}),
    )
    project = {"logicalId": "shop", "name": HOSTILE, "repoUrl": "https://git.test/" + "x" * 200}
    await deploy(api.alice, {**sent, "project": project})
    await deploy(api.alice, body(url_check("home", frequency=7, name=HOSTILE)))
    dangerous = {"logicalId": HOSTILE, "name": "x", "repoUrl": "javascript:alert(1)"}
    await deploy_at_once(api, {**body(), "project": dangerous})
    await begin(api, name=HOSTILE[:60], age_ms=actions.LEASE_MS)
    check = (await api.alice.get("/v1/checks")).body[0]["id"]
    complaints = collect_complaints(page)
    for width in (390, 1440):
        await page.set_viewport_size({"width": width, "height": 900})
        for path in ("/projects", "/projects/shop", f"/checks/{check}", f"/checks/{check}/edit"):
            await page.goto(path)
            await page.evaluate(
                "document.querySelectorAll('main details:not(.menu)').forEach(d => d.open = true)"
            )
            await expect(page.get_by_text(HOSTILE).first).to_be_visible()
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                assert await find_violations(page) == []
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert await page.evaluate(overflow) <= 0, path
    assert await page.locator("a[href^='javascript']").count() == 0
    assert complaints == []


async def test_the_empty_list_is_for_everybody(page: Page) -> None:
    for width in (390, 1440):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.goto("/projects")
        assert await find_violations(page) == []


async def test_projects_are_found_from_the_checks_and_from_the_settings(
    api: PublicApi, web: WebUser
) -> None:
    await deploy(api.alice, body(url_check("home")))
    for path in ("/", "/settings"):
        assert 'href="/projects"' in (await web.get(path)).text
