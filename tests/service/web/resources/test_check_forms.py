"""The form of a check asks in words, and sends what the API calls them."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.builders.alert_channels import a_channel
from tests.builders.check_bodies import check_body
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.servers.web_forms import Pairs, form_pairs
from tests.service.web.conftest import WebUser

RETRIES = {"type": "SINGLE_RETRY", "baseBackoffSeconds": 30}


async def a_check(user: ApiUser, kind: str, **fields: Any) -> dict[str, Any]:
    made = await user.post(f"/v1/checks/{kind}", check_body(kind, **fields))
    assert made.status == 201, made.body
    return dict(made.body)


async def change(api: PublicApi, web: WebUser, check: dict[str, Any], **fields: str) -> Any:
    """Fill in some fields of a check's form; the check that comes of it."""
    path = f"/checks/{check['id']}"
    shown = form_pairs((await web.get(f"{path}/edit")).text)
    filled = [(name, fields.get(name, value)) for name, value in shown]
    sent = await web.post(f"{path}/edit", Pairs(filled))
    assert sent.status == 303, sent.text
    return (await api.alice.get(f"/v1{path}")).body


@pytest.mark.parametrize(
    ("before", "chosen", "after"),
    [
        ((10, None), "20 s", (0, 20)),
        ((0, 10), "30 s", (0, 30)),
        ((0, 30), "1", (1, None)),
        ((10, 7), "60", (60, 7)),
    ],
)
async def test_one_menu_says_how_often_a_check_runs(
    api: PublicApi, web: WebUser, before: tuple[int, int], chosen: str, after: tuple[int, int]
) -> None:
    check = await a_check(api.alice, "api", frequency=before[0], frequencyOffset=before[1])

    changed = await change(api, web, check, frequency=chosen)

    assert (changed["frequency"], changed["frequencyOffset"]) == after


async def test_a_frequency_that_is_none_is_refused_by_the_api(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api.alice, "api")
    path = f"/checks/{check['id']}/edit"
    shown = form_pairs((await web.get(path)).text)

    filled = [(name, "often s" if name == "frequency" else value) for name, value in shown]

    assert (await web.post(path, Pairs(filled))).status == 422


@pytest.mark.parametrize(
    ("before", "chosen", "after"),
    [
        ((None, True), "1", (False, None)),
        ((None, False), "0", (True, None)),
        ((RETRIES, False), "1", (False, None)),
        ((RETRIES, False), "2", (False, "SINGLE_RETRY")),
    ],
)
async def test_one_field_says_whether_a_failed_run_is_tried_again(
    api: PublicApi, web: WebUser, before: Any, chosen: str, after: Any
) -> None:
    check = await a_check(api.alice, "url", retryStrategy=before[0], doubleCheck=before[1])

    changed = await change(api, web, check, **{"retryStrategy#shape": chosen})

    strategy = changed["retryStrategy"]
    assert (changed["doubleCheck"], strategy and strategy["type"]) == after


async def test_what_a_heartbeat_has_without_an_effect_is_not_shown_and_stays(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api.alice, "heartbeat", shouldFail=True, retryStrategy=RETRIES)
    shown = (await web.get(f"/checks/{check['id']}/edit")).text

    changed = await change(api, web, check, name="Other")

    assert changed["name"] == "Other"
    for field in ("shouldFail", "retryStrategy", "doubleCheck", "runtimeId"):
        assert f'name="{field}' not in shown
        assert changed[field] == check[field]


async def test_a_group_is_asked_for_once_there_is_one(api: PublicApi, web: WebUser) -> None:
    before = (await web.get("/checks/new?kind=URL")).text
    await api.alice.post("/v2/check-groups", {"name": "Shop"})
    after = (await web.get("/checks/new?kind=URL")).text

    assert 'name="groupId"' not in before
    assert 'name="groupId"' in after


@pytest.mark.parametrize("kind", ["API", "DNS", "HEARTBEAT", "BROWSER", "PLAYWRIGHT"])
async def test_no_choice_reads_as_the_api_spells_it(web: WebUser, kind: str) -> None:
    text = (await web.get(f"/checks/new?kind={kind}")).text

    choices = re.findall(r">([^<>]+)</(?:option|label)>", text)

    assert len(choices) > 10
    assert not {"AUTO", "BASIC", "DIGEST", "FIXED", "NONE"} & set(choices)
    assert [one for one in choices if re.search(r"[A-Z]_[A-Z]|`", one)] == []


@pytest.mark.parametrize(
    ("new", "stored"),
    [("/checks/new?kind=URL", "/v1/checks"), ("/groups/new", "/v1/check-groups")],
)
async def test_a_new_one_alerts_the_channels_that_its_form_lists_and_no_others(
    api: PublicApi, web: WebUser, new: str, stored: str
) -> None:
    await a_channel(api.alice)
    automatic = await a_channel(api.alice, autoSubscribe=True)
    filled = {"name": "Shop", "request.url": "https://shop.example/"}

    for is_kept in (True, False):
        shown = form_pairs((await web.get(new)).text)
        kept = [(name, filled.get(name, value)) for name, value in shown]
        listed = [value for name, value in kept if name.endswith("alertChannelId") and value]
        sent = [one for one in kept if is_kept or "Subscriptions[" not in one[0]]
        answer = await web.post(new, Pairs(iter(sent)))
        assert answer.status == 303, re.findall(r"problem[^<]*", answer.text)

    assert listed == [str(automatic)]
    found = (await api.alice.get(stored)).body
    sending = [
        [one["alertChannelId"] for one in each["alertChannelSubscriptions"] if one["activated"]]
        for each in found
    ]
    assert sorted(sending) == [[], [automatic]]


async def test_a_usual_assertion_is_added_and_filled_in_with_one_click(
    api: PublicApi, page: Page
) -> None:
    await page.goto(f"{api.url}/checks/new?kind=API")
    await page.locator("#f-name").fill("Shop")
    await page.get_by_label("URL", exact=True).fill("https://shop.example/")
    await page.get_by_role("button", name="Status code is 200").click()
    await page.get_by_role("button", name="JSON value equals").click()
    await page.keyboard.type("ok")
    added = page.locator('[name$="[1].property"]')
    assert await added.input_value() == "$.ok"
    await page.locator('[name$="[1].target"]').fill("true")
    await page.get_by_role("button", name="Create").click()
    await page.wait_for_url("**/checks/*-*")
    (check,) = (await api.alice.get("/v1/checks")).body
    assert [
        (one["source"], one["property"], one["comparison"], one["target"])
        for one in check["request"]["assertions"]
    ] == [("STATUS_CODE", "", "EQUALS", "200"), ("JSON_BODY", "$.ok", "EQUALS", "true")]


async def test_a_script_is_read_from_a_file_and_indented_by_the_tab_key(
    api: PublicApi, page: Page, tmp_path: Path
) -> None:
    file = tmp_path / "shop.js"
    file.write_text("await page.goto('about:blank')\n")
    await page.goto(f"{api.url}/checks/new?kind=BROWSER")
    await page.get_by_label("Read it from a file").set_input_files(file)
    script = page.locator('[name="script"]')
    await expect(script).to_have_value(file.read_text())
    await script.press("Control+Home")
    await script.press("Tab")
    await expect(script).to_have_value("  " + file.read_text())
    await script.press("Escape")
    await script.press("Tab")
    await expect(script).not_to_be_focused()


async def test_a_script_has_a_tall_field_with_a_number_beside_each_line(
    api: PublicApi, page: Page
) -> None:
    complaints = collect_complaints(page)
    await page.goto(f"{api.url}/checks/new?kind=BROWSER")
    script = page.get_by_label("Script", exact=True)
    numbers = page.locator(".lines > ol > li")

    await script.fill("\n".join(f"await page.goto('about:blank') // {at}" for at in range(90)))
    await expect(numbers).to_have_count(90)
    await script.press("Control+End")
    tops = await page.evaluate(
        "() => [...document.querySelectorAll('.lines > *')].map((one) => one.scrollTop)"
    )
    assert tops[0] > 0
    assert abs(tops[0] - tops[1]) <= 1
    await script.fill("1")
    await expect(numbers).to_have_count(1)
    box = await script.bounding_box()
    assert box is not None
    assert box["height"] > 300

    assert await script.get_attribute("autocorrect") == "off"
    assert await script.get_attribute("spellcheck") == "false"
    assert await find_violations(page) == []
    assert complaints == []


async def test_a_form_names_the_location_and_no_value_by_the_word_default(
    api: PublicApi, web: WebUser
) -> None:
    for kind in ("API", "BROWSER", "PLAYWRIGHT", "HEARTBEAT"):
        text = (await web.get(f"/checks/new?kind={kind}")).text
        labels = re.findall(r">([^<>]*)</(?:label|option|legend|span)>", text.partition("<main")[2])
        named = {one for one in labels if "default" in one.lower()}
        assert named == {"Default location"}
        assert "None" not in labels


@pytest.mark.parametrize("kind", ["URL", "API", "TCP", "DNS", "ICMP"])
async def test_a_check_is_duplicated_by_a_form_that_has_all_of_it_but_its_secrets(
    api: PublicApi, web: WebUser, kind: str
) -> None:
    secret = [{"key": "TOKEN", "value": "s3cr3t", "secret": True}]
    more = {"environmentVariables": secret} if kind == "API" else {}
    made = await api.alice.post(
        f"/v1/checks/{kind.lower()}", check_body(kind.lower(), tags=["shop"], **more)
    )
    page = (await web.get(f"/checks/{made.body['id']}")).text
    link = f"/checks/new?kind={kind}&amp;copy={made.body['id']}"
    assert link in page

    form = Pairs(form_pairs((await web.get(link.replace("&amp;", "&"))).text))

    assert "s3cr3t" not in str(form.items())
    assert dict(form.items())["name"] == f"{made.body['name']} (copy)"
    filled = Pairs(
        (name, "new" if name == "environmentVariables[0].value" and more else value)
        for name, value in form.items()
    )
    answer = await web.post(f"/checks/new?kind={kind}", filled)
    assert answer.status == 303, answer.text
    first, second = (await api.alice.get("/v1/checks")).body
    own = ("id", "name", "created_at", "updated_at", "environmentVariables", "frequencyOffset")
    assert {key: first[key] for key in first if key not in own} == {
        key: second[key] for key in second if key not in own
    }
