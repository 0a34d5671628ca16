"""The page of a test session: its checks, and how each of them went."""

from typing import Any

from playwright.async_api import Page

from contract.result import Failure, FailureKind, Outcome, Status
from tests.builders.check_bodies import check_body
from tests.builders.claimed_jobs import claim, submit
from tests.servers.public_api import ApiUser, PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser, sign_in

FAILED = Outcome(
    status=Status.FAILED,
    failure=Failure(kind=FailureKind.CONNECT, message="Nothing listens there."),
)
PASSED = Outcome(status=Status.PASSED)


async def start(user: ApiUser) -> Any:
    jobs = [
        {**check_body("url", name=name), "checkType": "URL", "logicalId": name}
        for name in ("<b>Home</b>", "Cart")
    ]
    place = {"type": "PRIVATE", "slugName": "default"}
    body = {"name": "Nightly", "checkRunJobs": jobs, "runLocation": place}
    return (await user.post("/v1/test-sessions/run", body)).body


async def test_each_check_has_its_verdict_and_leads_to_its_run(
    api: PublicApi, web: WebUser
) -> None:
    started = await start(api.alice)
    page = f"/test-sessions/{started['testSessionId']}"
    going_on = (await web.get(page)).text
    for job in await claim(api):
        await submit(
            api, job, FAILED if job.check_name == "Cart" else Outcome(status=Status.PASSED)
        )
    ended = (await web.get(page)).text
    run = await web.get(f"/checks/try/{started['sequenceIds']['Cart']}/at/default")
    elsewhere = await web.get(f"/checks/try/{started['sequenceIds']['Cart']}/at/nowhere")

    assert "hx-get" in going_on
    assert going_on.count("not ended") > 1
    assert "hx-get" not in ended
    assert "2 checks, 1 failed" in ended
    assert "&lt;b&gt;Home&lt;/b&gt;" in ended
    assert "Nothing listens there." in run.text
    assert elsewhere.status == 404


async def test_the_address_that_the_command_line_prints_leads_to_the_page(
    api: PublicApi, web: WebUser
) -> None:
    session_id = (await start(api.alice))["testSessionId"]
    account = api.alice.secrets.account_id
    answer = await web.get(f"/accounts/{account}/test-sessions/{session_id}")
    assert answer.headers["location"] == f"/test-sessions/{session_id}"


async def test_a_session_of_another_account_is_not_there(api: PublicApi, charlie: ApiUser) -> None:
    session_id = (await start(api.alice))["testSessionId"]
    stranger = await sign_in(api, charlie.secrets.api_key)
    assert (await stranger.get(f"/test-sessions/{session_id}")).status == 404


async def test_the_page_updates_itself_and_has_no_accessibility_violations(
    api: PublicApi, page: Page
) -> None:
    complaints = collect_complaints(page)
    session_id = (await start(api.alice))["testSessionId"]
    await page.goto(f"/test-sessions/{session_id}")
    for job in await claim(api):
        await submit(api, job, FAILED)
    await page.get_by_text("2 checks, 2 failed").wait_for()

    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for width in (390, 1440):
            await page.set_viewport_size({"width": width, "height": 900})
            assert await find_violations(page) == []
    assert complaints == []
