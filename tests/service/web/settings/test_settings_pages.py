"""Settings: what each role sees and changes."""

import re
from dataclasses import replace

import pytest
from playwright.async_api import Browser, Page

from service.accounts import actions as accounts
from service.accounts.model import Role
from service.audit import audit
from service.sign_in import actions as sign_in
from service.web.cookies import SESSION_COOKIE
from tests.builders.made_checks import made
from tests.builders.status_pages import INCIDENTS, a_service, incident_body, page_body, update_body
from tests.builders.status_pages import PAGES as STATUS_PAGES
from tests.builders.web_users import PASSWORD, a_user
from tests.servers.public_api import PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser, session_of, sign_in_user
from tests.service.web.conftest import sign_in as sign_in_key

_WINDOW = {"startsAt": "2030-03-01T03:00:00Z", "endsAt": "2030-03-01T05:00:00Z"}
PAGES = ("/settings", "/settings/users", "/settings/keys", "/settings/audit")
NEW = "another long password"
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "\u202eright to left",
    "x" * 200,
    "😀 {{ 7 * 7 }}",
)


async def key_id(api: PublicApi, raw: str) -> str:
    caller = await api.backend.keys.caller(raw)
    assert caller is not None
    return str(caller.key_id)


async def operations(api: PublicApi) -> list[tuple[str, str | None]]:
    entries = await api.database.read(lambda c: audit.list_newest(c, limit=20))
    return [(entry.operation, entry.user_id) for entry in entries]


async def test_a_key_is_made_shown_once_used_and_revoked(api: PublicApi, web: WebUser) -> None:
    form = {"name": "CI of the shop", "role": "READ_ONLY", "kind": "program"}
    made = await web.post("/settings/keys", form)
    shown = await web.follow(made)
    raw = re.findall(r"sv_[\w-]{43}", shown.text)[0]
    assert made.status == 303
    assert "Max-Age=0" in shown.headers["set-cookie"]

    assert raw not in (await web.get("/settings/keys")).text
    program = replace(api.alice, secrets=replace(api.alice.secrets, api_key=raw))
    assert (await program.get("/v1/checks")).status == 200
    assert (await program.post("/v1/checks/url", {})).status == 403

    path = f"/settings/keys/{await key_id(api, raw)}/revoke"
    assert "CI of the shop" in (await web.get(path)).text
    assert (await web.post(path, {})).headers["location"] == "/settings/keys"
    assert (await program.get("/v1/checks")).status == 401
    assert "1 revoked key" in (await web.get("/settings/keys")).text
    assert (await web.post(path, {})).status == 404


async def test_a_rotated_key_has_a_twin_with_its_name_role_and_kind_and_works_on(
    api: PublicApi, web: WebUser
) -> None:
    form = {"name": "CI of the shop", "role": "READ_ONLY", "kind": "program"}
    made = await web.follow(await web.post("/settings/keys", form))
    first = re.findall(r"sv_[\w-]{43}", made.text)[0]
    path = f"/settings/keys/{await key_id(api, first)}"

    shown = await web.follow(await web.post(f"{path}/rotate", {}))
    second = re.findall(r"sv_[\w-]{43}", shown.text)[0]

    assert second != first
    assert shown.text.count(">CI of the shop</td>") == 2
    for raw in (first, second):
        program = replace(api.alice, secrets=replace(api.alice.secrets, api_key=raw))
        assert (await program.get("/v1/checks")).status == 200
        assert (await program.post("/v1/checks/url", {})).status == 403
    await web.post(f"{path}/revoke", {})
    assert (await web.post(f"{path}/rotate", {})).status == 404


async def test_whoever_revokes_the_key_they_signed_in_with_is_out(
    api: PublicApi, web: WebUser
) -> None:
    path = f"/settings/keys/{await key_id(api, api.alice.secrets.api_key)}/revoke"

    assert "you will be signed out" in (await web.get(path)).text
    assert (await web.post(path, {})).headers["location"] == "/sign-in"
    assert (await web.get("/settings")).status == 303


async def test_when_a_key_was_used_is_shown(api: PublicApi, web: WebUser) -> None:
    used = api.backend.keys.take_used()
    before = (await web.get("/settings/keys")).text
    await api.database.write(lambda c: accounts.note_use(c, used, now_ms=1_700_000_000_000))

    assert "2023-11-14 22:13:20" not in before
    assert "2023-11-14 22:13:20" in (await web.get("/settings/keys")).text


async def test_another_account_is_neither_seen_nor_changed(api: PublicApi) -> None:
    user = await a_user(api)
    charlie = await api.another_user("Charlie")
    web = await sign_in_key(api, charlie.secrets.api_key)
    key = await key_id(api, api.alice.secrets.api_key)

    seen = "".join([(await web.get(path)).text for path in PAGES])
    statuses = [
        (await web.get(f"/settings/users/{user.id}")).status,
        (await web.get(f"/settings/keys/{key}/revoke")).status,
        (await web.post(f"/settings/keys/{key}/rotate", {})).status,
        *[
            (await web.post(path, {})).status
            for path in (
                f"/settings/keys/{key}/revoke",
                *(
                    f"/settings/users/{user.id}/{verb}"
                    for verb in ("link", "role", "disable", "enable")
                ),
            )
        ],
    ]

    assert "ann@example.com" not in seen
    assert "first start" not in seen
    assert set(statuses) == {404}
    assert (await api.alice.get("/v1/checks")).status == 200
    await sign_in_user(api, user.email)


async def test_a_user_is_created_with_a_link_and_signs_in(api: PublicApi, web: WebUser) -> None:
    form = {"email": "bob@example.com", "name": "Bob", "role": "READ_ONLY"}
    made = await web.post("/settings/users", form)
    link = re.findall(r"/password/[\w-]{43}", made.text)[0]

    async with api.http.post(
        api.url + link, data={"password": NEW}, allow_redirects=False
    ) as answer:
        bob = replace(web, session=session_of(answer.headers["set-cookie"]))

    assert "read only" in (await bob.get("/settings")).text
    again = await web.post("/settings/users", {**form, "email": "BOB@example.com"})
    assert again.status == 422
    assert "already" in again.text
    assert (await web.post("/settings/users", {**form, "email": "bob"})).status == 422


async def test_a_user_is_disabled_enabled_and_given_another_role(
    api: PublicApi, web: WebUser
) -> None:
    user = await a_user(api)
    ann, path = await sign_in_user(api, user.email), f"/settings/users/{user.id}"

    await web.post(f"{path}/role", {"role": "READ_ONLY"})
    assert (await ann.post("/settings/keys", {"name": "x"})).status == 403
    await web.post(f"{path}/disable", {})
    assert (await ann.get("/settings")).status == 303
    assert (await web.post(f"{path}/link", {})).status == 403
    await web.post(f"{path}/enable", {})
    await sign_in_user(api, user.email)

    assert [name for name, _ in await operations(api)][1:4] == [
        "users enable",
        "users disable",
        "users role",
    ]


async def test_nobody_disables_themselves(api: PublicApi) -> None:
    user = await a_user(api)
    ann = await sign_in_user(api, user.email)

    for verb in ("disable", "role"):
        refused = await ann.post(f"/settings/users/{user.id}/{verb}", {"role": "READ_ONLY"})
        assert refused.status == 403

    assert (await ann.get("/settings")).status == 200


async def test_whoever_may_only_read_sees_no_button_that_changes_and_is_refused(
    api: PublicApi,
) -> None:
    user = await a_user(api)
    await a_user(api, "bob@example.com", role=Role.READ_ONLY)
    bob = await sign_in_user(api, "bob@example.com")
    key = await key_id(api, api.alice.secrets.api_key)
    before = await operations(api)

    for page in ("/settings/users", "/settings/keys", f"/settings/users/{user.id}"):
        text = (await bob.get(page)).text
        forms = re.findall(r'<form method="post" action="([^"]+)"', text)
        assert forms == ["/sign-out"], page
        assert "/revoke" not in text
    assert (await bob.get(f"/settings/keys/{key}/revoke")).status == 403
    for path in (
        "/settings/keys",
        f"/settings/keys/{key}/rotate",
        f"/settings/keys/{key}/revoke",
        "/settings/users",
        *(f"/settings/users/{user.id}/{verb}" for verb in ("link", "role", "disable", "enable")),
    ):
        refused = await bob.post(path, {"name": "x", "email": "x@example.com"})
        assert refused.status == 403, path
        assert "you may only read" in refused.text

    assert await operations(api) == before


async def test_a_password_is_changed_by_whoever_knows_it(api: PublicApi) -> None:
    user = await a_user(api)
    here, there = [await sign_in_user(api, user.email) for _ in range(2)]

    wrong = await here.post("/settings/password", {"present": "wrong one", "password": NEW})
    short = await here.post("/settings/password", {"present": PASSWORD, "password": "short"})
    changed = await here.post("/settings/password", {"present": PASSWORD, "password": NEW})

    assert (wrong.status, short.status, changed.status) == (422, 422, 303)
    assert "not your present password" in wrong.text
    assert "5 characters" in short.text
    here = replace(here, session=session_of(changed.headers["set-cookie"]))
    assert (await here.get("/settings")).status == 200
    assert (await there.get("/settings")).status == 303
    await sign_in_user(api, user.email, NEW)


async def test_an_api_key_has_no_password(web: WebUser) -> None:
    refused = await web.post("/settings/password", {"present": "", "password": NEW})

    assert refused.status == 404


async def test_the_audit_log_names_people_keys_and_commands(api: PublicApi, web: WebUser) -> None:
    user = await a_user(api, name="Ann Lee")
    ann = await sign_in_user(api, user.email)
    await ann.post("/settings/keys", {"name": "by Ann"})
    await api.alice.post("/v1/variables", {"key": "A", "value": "1"})

    text = (await web.get("/settings/audit")).text
    of_ann = (await web.get(f"/settings/audit?who=user:{user.id}")).text
    of_variables = (await web.get("/settings/audit?what=variables")).text

    deleted = (await web.get("/settings/audit?done=deleted")).text

    assert "<td>Ann Lee<" in text
    assert "first start (cu_****" in text
    assert "Created API key</span> by Ann (cu_" in of_ann
    assert "Created variable" not in of_ann
    assert "Created variable" in of_variables
    assert "Key, value" in of_variables
    assert "Created API key" not in of_variables
    assert "Created" not in deleted.partition("<table")[2]


async def test_the_audit_log_leads_to_what_was_changed(api: PublicApi, web: WebUser) -> None:
    check = await made(api.alice, name="Shop")
    changed = await api.alice.put(f"/v1/checks/url/{check['id']}", {**check, "name": "The shop"})
    assert changed.status == 200, changed.body

    text = (await web.get("/settings/audit?what=checks&done=changed")).text

    assert f'Changed URL check</span> <a href="/checks/{check["id"]}">The shop</a>' in text
    assert "Created" not in text.partition("<table")[2]


async def test_the_audit_log_names_whatever_is_still_there_and_leads_to_it(
    api: PublicApi, web: WebUser
) -> None:
    alice = api.alice
    service = await a_service(alice, "Search")
    page = (await alice.post(STATUS_PAGES, page_body(service, name="Shop status"))).body["id"]
    incident = (await alice.post(INCIDENTS, incident_body(service, name="No hits"))).body["id"]
    await alice.post(f"{INCIDENTS}/{incident}/incident-updates", update_body("MONITORING"))
    ids = {}
    for path, body in (
        (
            "/v1/alert-channels",
            {"type": "WEBHOOK", "config": {"name": "Bot", "url": "https://a.b"}},
        ),
        ("/v1/maintenance-windows", {"name": "Upgrade", "tags": [], **_WINDOW}),
        ("/v1/snippets", {"name": "sign-in", "script": "1"}),
        ("/v2/check-groups", {"name": "Shop"}),
    ):
        ids[path] = (await alice.post(path, body)).body["id"]
    gone = (await alice.post("/v1/snippets", {"name": "short-lived", "script": "1"})).body["id"]
    await alice.delete(f"/v1/snippets/{gone}")

    text = (await web.get("/settings/audit")).text

    window = ids["/v1/maintenance-windows"]
    for done, link in (
        ("Created alert channel", f'/channels/{ids["/v1/alert-channels"]}/edit">Bot'),
        ("Created maintenance window", f'/maintenance/{window}/edit">Upgrade'),
        ("Created snippet", f'/settings/snippets/{ids["/v1/snippets"]}/edit">sign-in'),
        ("Created check group", f'/groups/{ids["/v2/check-groups"]}">Shop'),
        ("Created status page service", f'/services/{service}/edit">Search'),
        ("Created status page", f'/status-pages/{page}">Shop status'),
        ("Created incident", f'/incidents/{incident}">No hits'),
        ("Created incident update", f'/incidents/{incident}">No hits'),
    ):
        assert f'{done}</span> <a href="{link}</a>' in text
    assert f'Deleted snippet</span> <span class="mono quiet id">{gone}</span>' in text


async def test_the_audit_log_has_pages(api: PublicApi, web: WebUser) -> None:
    for number in range(55):
        await api.alice.post("/v1/variables", {"key": f"A{number}", "value": "1"})

    first = (await web.get("/settings/audit?what=variables")).text
    older = re.findall(r'href="(/settings/audit\?[^"]*before=\d+)"', first)[0].replace("&amp;", "&")
    second = (await web.get(older)).text

    assert first.count(">Created variable") == 50
    assert second.count(">Created variable") == 5
    assert "Older" not in second
    assert (await web.get("/settings/audit?before=x&who=:&what=%00")).status == 200


async def test_pages_are_for_everybody_on_every_screen(
    api: PublicApi, browser: Browser, page: Page
) -> None:
    user = await a_user(api)
    paths = (*PAGES, f"/settings/users/{user.id}")
    for scheme in ("light", "dark"):
        for width in (390, 1440):
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": width, "height": 900})
            for path in paths:
                await page.goto(path)
                assert await find_violations(page) == [], (path, scheme, width)
                wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
                assert not await page.evaluate(wide), (path, width)


async def test_the_choices_of_the_menu_stand_in_one_line_each(page: Page) -> None:
    for width in (390, 1440):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.goto("/settings")
        await page.locator("details.account > summary").click()
        for choice in await page.locator(".account .switch").all():
            labels = [await one.bounding_box() for one in await choice.locator("label").all()]
            assert len({one["y"] for one in labels if one}) == 1


async def test_forms_among_the_settings_keep_their_navigation(web: WebUser) -> None:
    alerting = (await web.get("/settings/alerting")).text
    assert '<a href="/settings/alerting" aria-current="page">' in alerting
    for path in ("/settings/variables/new", "/settings/snippets/new", "/settings/certificates/new"):
        text = (await web.get(path)).text
        assert f'<a href="{path.removesuffix("/new")}" aria-current="page">' in text


async def test_the_ways_in_are_for_everybody(
    api: PublicApi, browser: Browser, web: WebUser
) -> None:
    user = await a_user(api)
    raw = await api.database.write(
        lambda c: sign_in.create_password_link(
            c, api.backend.pepper, user.id, now_ms=api.backend.clock.now_ms(c)
        )
    )
    for scheme in ("light", "dark"):
        context = await browser.new_context(base_url=web.url, color_scheme=scheme)
        page = await context.new_page()
        for path in ("/sign-in", f"/password/{raw}"):
            await page.goto(path)
            assert await find_violations(page) == [], (path, scheme)
        await context.close()


async def test_a_person_signs_in_creates_a_key_and_signs_out(
    api: PublicApi, browser: Browser, web: WebUser
) -> None:
    await a_user(api)
    context = await browser.new_context(base_url=web.url)
    page = await context.new_page()
    complaints = collect_complaints(page)

    await page.goto("/settings/keys")
    await page.get_by_label("E-mail address").fill("ann@example.com")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_label("Name").fill("CI")
    await page.get_by_role("button", name="Create key").click()
    key = await page.locator(".copy code").inner_text()
    await page.get_by_text("Default").click()
    await page.get_by_role("button", name="Sign out").click()
    await page.get_by_text("Sign in with an API key").click()
    await page.get_by_label("API key", exact=True).fill(key)
    await page.get_by_role("button", name="Sign in with the key").click()
    await page.goto("/settings")

    assert await page.get_by_text("You are signed in with an API key").count() == 1
    assert [one for one in complaints if "404" not in one] == []
    await context.close()


@pytest.mark.parametrize("path", [*PAGES, "/settings/users/ID"])
async def test_nothing_that_a_person_is_called_runs(
    api: PublicApi, page: Page, web: WebUser, path: str
) -> None:
    ids = []
    for number, name in enumerate(HOSTILE):
        user = await a_user(api, f"u{number}@example.com", name=name, password=None)
        ids.append(user.id)
        await web.post("/settings/keys", {"name": name})
    complaints = collect_complaints(page)

    for user_id in ids if "ID" in path else ids[:1]:
        await page.goto(path.replace("ID", user_id))
        assert await page.evaluate("document.querySelectorAll('main img, main script').length") == 0

    assert complaints == []
    assert SESSION_COOKIE in {cookie["name"] for cookie in await page.context.cookies()}
