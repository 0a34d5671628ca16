"""What stands in the form of a check is tried without saving it."""

import re
from typing import Any

import msgspec
from playwright.async_api import Page, expect

from contract.result import Failure, FailureKind, Outcome, Status
from contract.wire import encode
from service.accounts.model import Role
from tests.builders.check_bodies import check_body
from tests.builders.claimed_jobs import claim, submit
from tests.servers.public_api import PublicApi
from tests.servers.web_forms import Pairs, form_pairs
from tests.service.web.conftest import WebUser, sign_in
from tests.service.web.test_result_page import an_artifact, keep

FAILED = Outcome(
    status=Status.FAILED,
    response_time_ms=8,
    failure=Failure(kind=FailureKind.CONNECT, message="Nothing listens there."),
)


async def typed(web: WebUser, path: str, **fields: str) -> Pairs:
    """A form as it is shown, with these fields filled in."""
    shown = form_pairs((await web.get(path)).text)
    changed = {name.replace("__", "."): value for name, value in fields.items()}
    return Pairs([(name, changed.get(name, value)) for name, value in shown])


async def count_checks(api: PublicApi) -> int:
    return len((await api.alice.get("/v1/checks")).body)


async def test_a_form_is_tried_without_a_name_and_without_being_saved(
    api: PublicApi, web: WebUser
) -> None:
    form = await typed(web, "/checks/new?kind=URL", request__url="http://127.0.0.1:1/")

    sent = await web.post("/checks/try?kind=URL", form)
    waiting = await web.get(sent.headers["location"])
    (job,) = await claim(api)
    await submit(api, job, FAILED)
    ended = await web.get(sent.headers["location"], headers={"hx-request": "true"})

    assert "Queued at location default" in waiting.text
    assert 'http-equiv="refresh"' in waiting.text
    assert "Failed in 8 ms" in ended.text
    assert "Nothing listens there." in ended.text
    assert "hx-get" not in ended.text
    assert await count_checks(api) == 0


async def test_what_is_tried_can_be_stopped_while_it_runs(api: PublicApi, web: WebUser) -> None:
    form = await typed(web, "/checks/new?kind=URL", request__url="http://127.0.0.1:1/")
    here = (await web.post("/checks/try?kind=URL", form)).headers["location"]
    (job,) = await claim(api)
    part = {"hx-request": "true"}
    running = (await web.get(here, headers=part)).text

    sent = [*form.items(), ("csrf", await web.token())]
    stopped = await web.ask("POST", f"{here}/stop", data=sent, headers=part)

    assert f'hx-post="{here}/stop"' in running
    assert "Stopped" in stopped.text
    assert "hx-get" not in stopped.text
    assert f"{here}/stop" not in stopped.text
    await submit(api, job, FAILED)
    assert "Failed" not in (await web.get(here, headers=part)).text


async def test_what_is_tried_says_who_runs_it_where_and_for_how_long(
    api: PublicApi, web: WebUser
) -> None:
    form = await typed(web, "/checks/new?kind=BROWSER", script="await page.goto('about:blank')")
    here = (await web.post("/checks/try?kind=BROWSER", form)).headers["location"]
    await claim(api)

    text = " ".join(re.sub("<[^>]*>", " ", (await web.get(here)).text).split())

    assert re.search(
        r"Queued at location default for \S+ m?s Taken by agent agent-1 Runs for \S+ m?s ", text
    )


async def test_without_a_script_a_stop_leads_back_to_what_was_tried_also_once_it_has_ended(
    api: PublicApi, web: WebUser
) -> None:
    form = await typed(web, "/checks/new?kind=URL", request__url="http://127.0.0.1:1/")
    here = (await web.post("/checks/try?kind=URL", form)).headers["location"]

    assert f'<form method="post" action="{here}/stop">' in (await web.get(here)).text
    for path in (f"{here}/stop", f"{here}/at/default/stop"):
        stopped = await web.post(path, {})
        assert (stopped.status, stopped.headers["location"]) == (303, path.removesuffix("/stop"))
    assert "Stopped" in (await web.get(here)).text


async def test_what_is_tried_is_stopped_by_nobody_who_only_reads_and_by_no_other_account(
    api: PublicApi, web: WebUser
) -> None:
    form = await typed(web, "/checks/new?kind=URL", request__url="http://127.0.0.1:1/")
    here = (await web.post("/checks/try?kind=URL", form)).headers["location"]
    reader = await sign_in(api, (await api.colleague("Eve", role=Role.READ_ONLY)).secrets.api_key)
    mallory = await sign_in(api, (await api.another_user("Mallory")).secrets.api_key)

    assert f"{here}/stop" not in (await reader.get(here)).text
    assert (await reader.post(f"{here}/stop", {})).status == 403
    assert (await mallory.post(f"{here}/stop", {})).status == 404
    assert "Queued at location default" in (await web.get(here)).text


async def test_what_was_wrong_before_does_not_stand_beside_what_is_tried_now(
    api: PublicApi, page: Page
) -> None:
    await page.goto(f"{api.url}/checks/new?kind=URL")
    await page.get_by_role("button", name="Create").click()
    problems = page.locator(".problem, [role=alert], [aria-invalid]")
    await expect(problems.first).to_be_visible()

    await page.get_by_label("URL", exact=True).fill("http://127.0.0.1:1/")
    await page.get_by_role("button", name="Try now").click()

    await expect(page.get_by_label("Try now")).to_contain_text("Queued at location default")
    await expect(problems).to_have_count(0)


async def test_what_is_missing_in_a_form_is_said_by_its_labels(
    api: PublicApi, web: WebUser
) -> None:
    form = await typed(web, "/checks/new?kind=URL")

    answer = await web.post("/checks/try?kind=URL", form)

    assert answer.status == 422
    assert "<li>URL " in answer.text
    assert "checkRunJobs" not in answer.text


async def test_a_stored_check_is_tried_with_its_secrets_which_the_form_has_not(
    api: PublicApi, web: WebUser
) -> None:
    request: dict[str, Any] = {
        "method": "GET",
        "url": "https://shop.example/",
        "basicAuth": {"username": "u", "password": "very-secret"},
    }
    made = (await api.alice.post("/v1/checks/api", check_body("api", request=request))).body
    form = await typed(web, f"/checks/{made['id']}/edit", request__url="https://other.example/")

    sent = await web.post(f"/checks/try?kind=API&id={made['id']}", form)
    (job,) = await claim(api)

    assert sent.status == 303, sent.text
    assert b"very-secret" in encode(job.spec)
    assert b"other.example" in encode(job.spec)
    assert (await api.alice.get(f"/v1/checks/{made['id']}")).body == made


async def test_the_files_of_a_tried_check_can_be_opened_by_its_own_account_alone(
    api: PublicApi, web: WebUser
) -> None:
    form = await typed(web, "/checks/new?kind=BROWSER", script="await page.goto('about:blank')")
    sent = await web.post("/checks/try?kind=BROWSER", form)
    here = sent.headers["location"]
    (job,) = await claim(api)
    shot, trace = b"picture", b"zip"
    artifacts = (
        an_artifact("shot.png", "screenshot", shot, "image/png"),
        an_artifact("trace.zip", "trace", trace),
        an_artifact("late.webm", "video", b"film", "video/webm"),
    )
    await submit(api, job, msgspec.structs.replace(FAILED, artifacts=artifacts))
    keep(api, int(job.run_id), "shot.png", shot, fence=job.fence)
    keep(api, int(job.run_id), "trace.zip", trace, fence=job.fence)

    text = (await web.get(here, headers={"hx-request": "true"})).text
    mallory = await sign_in(api, (await api.another_user("Mallory")).secrets.api_key)

    assert f'<img class="thumb" src="{here}/files/shot.png"' in text
    assert f'href="{here}/files/trace.zip"' in text
    assert "late.webm is on its way" in text
    assert "hx-get" in text
    shown = await web.get(f"{here}/files/shot.png")
    assert (shown.status, shown.headers["content-type"]) == (200, "image/png")
    saved = await web.get(f"{here}/files/trace.zip")
    assert saved.headers["content-disposition"].startswith("attachment")
    assert (await web.get(f"{here}/traces/trace.zip")).status == 200
    assert (await web.get(f"{here}/traces/shot.png")).status == 404
    assert (await web.get(f"{here}/files/other.png")).status == 404
    for path in (here, f"{here}/files/shot.png", f"{here}/traces/trace.zip"):
        assert (await mallory.get(path)).status == 404
