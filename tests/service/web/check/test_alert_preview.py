"""Which alerts other settings would have led to."""

from tests.builders.stored_results import failed, passed, store
from tests.servers.public_api import PublicApi
from tests.service.web.check.test_check_page import MINUTE_MS, a_check, now_ms, words
from tests.service.web.conftest import WebUser


async def test_settings_are_tried_on_the_past_and_not_kept(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api)
    outcomes = (failed(), passed(), failed(), failed(), passed())
    for number, outcome in enumerate(outcomes):
        at_ms = now_ms() - (10 - number) * MINUTE_MS
        await store(api, check, outcome, started_ms=at_ms)
    path = f"/checks/{check['id']}/preview"

    first = await web.get(path)
    second = await web.get(path + "?escalation=RUN_BASED&runs=2", headers={"hx-request": "true"})

    assert (
        "With these settings: 2 alerts and 2 recoveries in the last 30 days (5 runs replayed)"
        in words(first.text)
    )
    assert "With these settings: 1 alert and 1 recovery in the last 30 days" in words(second.text)
    assert "<html" not in second.text
    settings = (await api.alice.get(f"/v1/checks/{check['id']}")).body["alertSettings"]
    assert settings["runBasedEscalation"]["failedRunThreshold"] == 1


async def test_the_form_begins_with_the_settings_that_apply(api: PublicApi, web: WebUser) -> None:
    settings = {
        "escalationType": "RUN_BASED",
        "runBasedEscalation": {"failedRunThreshold": 3},
        "reminders": {"amount": 100_000, "interval": 30},
    }
    check = await a_check(api, alertSettings=settings, useGlobalAlertSettings=False)

    text = (await web.get(f"/checks/{check['id']}?tab=alerts")).text

    assert (
        "escalation=RUN_BASED&amp;runs=3&amp;minutes=5&amp;reminders=100000&amp;interval=30" in text
    )
    assert '<option value="3" selected>3 failed runs in a row</option>' in text


async def test_values_that_no_setting_has_are_passed_over(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api)

    answer = await web.get(f"/checks/{check['id']}/preview?runs=99&minutes=x&share=-1&reminders=²")

    assert answer.status == 200
    assert "With these settings: 0 alerts" in words(answer.text)
