"""What one run saw, and why it ended as it did."""

import hashlib
import json
import struct
import zlib
from functools import partial
from html import unescape
from typing import Any, Final, Literal

import pytest
from playwright.async_api import Browser, Dialog, Page

from contract.assertions import AssertionResult, Comparison, Source
from contract.evidence import BrowserEvidence, Hop, HttpEvidence, ScriptError
from contract.result import (
    Artifact,
    ArtifactKind,
    Evidence,
    Failure,
    FailureKind,
    HeartbeatEvidence,
    LogLine,
    Outcome,
    Status,
    Timings,
)
from service.locations import actions as locations
from service.object_store.folder import FolderStore
from service.results.assets import RunFile
from service.results.model import Cause, ResultType
from service.vault.texts import HIDDEN
from service.web.cookies import SESSION_COOKIE
from tests.builders.check_bodies import script_body
from tests.builders.code_bundles import a_bundle, suite_body
from tests.builders.made_checks import made
from tests.builders.observations import http_evidence
from tests.builders.stored_results import START_MS, a_record, failed, passed, store, store_all
from tests.contract.sample_evidence import EVIDENCE
from tests.servers.public_api import PublicApi
from tests.servers.web_browser import collect_complaints, find_violations
from tests.service.web.conftest import WebUser, sign_in

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'
MINUTE_MS = 60_000
VARIANTS: Final[tuple[tuple[Literal["light", "dark"], int], ...]] = (
    *(("light", 390), ("dark", 390)),
    *(("light", 1440), ("dark", 1440)),
)
CERTIFICATE = next(
    one.tls for one in EVIDENCE.values() if isinstance(one, HttpEvidence) and one.tls is not None
)


async def path_of_newest(api: PublicApi, check: dict[str, Any], **query: Any) -> str:
    """Where the newest result of a check is shown."""
    asked = {"resultType": "ALL", "limit": 1, **query}
    (one,) = (await api.alice.get(f"/v1/check-results/{check['id']}", params=asked)).body
    return f"/checks/{check['id']}/results/{one['id']}"


def a_png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    rows = zlib.compress(b"".join(b"\0" + b"\x30\x60\x90" * width for _ in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def an_artifact(
    name: str, kind: ArtifactKind, content: bytes, content_type: str = "application/octet-stream"
) -> Artifact:
    return Artifact(
        name=name,
        kind=kind,
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        content_type=content_type,
    )


def keep(api: PublicApi, run_id: int, name: str, content: bytes, *, fence: int = 1) -> None:
    """The file, as if its upload had ended."""
    location_id = api.alice.secrets.location_id
    file = RunFile(location_id=location_id, run_id=run_id, fence=fence, name=name)
    assert isinstance(api.backend.artifacts, FolderStore)
    path = api.backend.artifacts.folder / file.key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def an_assertion(order: int, actual: str, error: str | None = None) -> AssertionResult:
    return AssertionResult(
        source=Source.JSON_BODY,
        comparison=Comparison.EQUALS,
        property=f"$.part{order}",
        target="ok",
        order=order,
        actual=actual,
        error=error,
    )


async def test_a_verdict_is_one_sentence_with_what_belongs_to_it(
    api: PublicApi, web: WebUser
) -> None:
    check = await made(api.alice, name="Shop")
    run_id = await store(
        api, check, failed("It fell over."), result_type=ResultType.ATTEMPT, attempt=1
    )
    first = await path_of_newest(api, check)
    await store(api, check, failed("It broke."), run_id=run_id, attempt=2, started_ms=START_MS + 9)

    text = (await web.get(await path_of_newest(api, check))).text

    assert "It broke." in text.partition("</h1>")[0].rpartition("<h1")[2]
    assert "agent agent-1" in text
    assert "attempt 2 of 2" in text
    assert f'href="{first}"' in text


async def test_assertions_that_fail_come_first(api: PublicApi, web: WebUser) -> None:
    check = await made(api.alice)
    good, bad = an_assertion(0, "ok"), an_assertion(1, "degraded", "it should be ok")
    await store(api, check, passed(assertions=(good, bad)))

    text = (await web.get(await path_of_newest(api, check))).text

    assert text.index("$.part1") < text.index("$.part0")
    assert "1 of 2 failed" in text


async def test_an_assertion_that_failed_has_one_bar_on_every_screen(
    api: PublicApi, page: Page
) -> None:
    check = await made(api.alice)
    await store(api, check, passed(assertions=(an_assertion(0, "degraded", "it should be ok"),)))
    path = await path_of_newest(api, check)
    shadows = (
        "[...document.querySelectorAll('tr.is-bad, tr.is-bad > td')]"
        ".filter((one) => getComputedStyle(one).boxShadow !== 'none').length"
    )
    for width in (390, 1440):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.goto(path)
        assert await page.evaluate(shadows) == 1


async def test_a_missed_run_says_why_and_what_to_do(api: PublicApi, web: WebUser) -> None:
    check = await made(api.alice, name="Shop")
    await store(api, check, cause=Cause.NO_AGENT)

    text = (await web.get(await path_of_newest(api, check))).text

    assert "is connected at the location" in text
    assert "counts neither as passed nor as failed" in text
    assert f'href="/locations/{api.alice.secrets.location_id}"' in text


async def test_what_was_hidden_is_marked(api: PublicApi, web: WebUser) -> None:
    check = await made(api.alice)
    evidence = http_evidence(body=f'{{"token": "{HIDDEN}", "n": 1}}')
    await store(api, check, passed(evidence=evidence))

    text = (await web.get(await path_of_newest(api, check))).text

    assert HIDDEN not in text
    assert ">hidden</mark>" in text
    assert "Secrets were hidden by the agent" in text


async def test_a_comparison_shows_only_what_differs(api: PublicApi, web: WebUser) -> None:
    check = await made(api.alice)
    old = http_evidence(response_headers={"server": "one", "vary": "same"}, body='{"a":1,"b":2}')
    new = http_evidence(response_headers={"server": "two", "vary": "same"}, body='{"a":1,"b":3}')
    await store(api, check, passed(10, evidence=old))
    await store(api, check, passed(900, evidence=new), started_ms=START_MS + MINUTE_MS)
    path = await path_of_newest(api, check)

    page = (await web.get(path)).text
    other = page.partition("?with=")[2].partition('"')[0]
    text = (await web.get(f"{path}?with={other}")).text
    differences = text.partition('id="differences"')[2].partition("</section>")[0]

    assert ">server<" in differences.replace("</b> server", ">server<")
    assert "vary" not in differences
    assert "900 ms" in differences
    assert "+890 ms" in differences
    assert "&#34;b&#34;" in differences
    assert "Compare" in page


async def test_a_run_that_got_no_answer_is_not_faster_than_a_good_one(
    api: PublicApi, web: WebUser
) -> None:
    check = await made(api.alice)
    await store(api, check, passed(900, evidence=http_evidence()))
    await store(api, check, failed(), started_ms=START_MS + MINUTE_MS)
    path = await path_of_newest(api, check)
    other = (await web.get(path)).text.partition("?with=")[2].partition('"')[0]

    text = (await web.get(f"{path}?with={other}")).text

    assert "Answers and times are not compared" in text
    assert "Response" not in text.partition('id="differences"')[2].partition("</section>")[0]
    assert "\N{MINUS SIGN}900 ms" not in text


async def test_an_assertion_is_in_words_with_units_and_readable_json(
    api: PublicApi, web: WebUser
) -> None:
    check = await made(api.alice)
    slow = AssertionResult(
        source=Source.RESPONSE_TIME,
        comparison=Comparison.LESS_THAN,
        target="2000",
        order=0,
        actual="2345.678",
        error="RESPONSE_TIME should be less than 2000 ms, but it is 2345.678 ms.",
    )
    await store(api, check, passed(assertions=(slow, an_assertion(1, '{"a":{"b":1}}'))))

    text = unescape((await web.get(await path_of_newest(api, check))).text)

    assert "<b>Response time</b>" in text
    assert "RESPONSE_TIME" not in text
    assert "2,000 ms" in text
    assert "2,345.68 ms" in text
    assert '{\n  "a": {\n    "b": 1' in text


async def test_a_run_that_failed_leads_to_the_last_good_one_of_its_location(
    api: PublicApi, web: WebUser
) -> None:
    check = await made(api.alice)
    await store(api, check, passed())
    good = await path_of_newest(api, check)
    await store(api, check, failed(), started_ms=START_MS + MINUTE_MS)

    text = (await web.get(await path_of_newest(api, check))).text

    assert f'Last good run <a href="{good}"' in text


async def test_nobody_sees_results_and_files_of_another_account(
    api: PublicApi, web: WebUser
) -> None:
    check = await made(api.alice)
    run_id = await store(api, check, passed(artifacts=(an_artifact("a.txt", "file", b"a"),)))
    keep(api, run_id, "a.txt", b"a")
    path = await path_of_newest(api, check)
    mallory = await sign_in(api, (await api.another_user("Mallory")).secrets.api_key)

    assert (await web.get(f"{path}/files/a.txt")).text == "a"
    assert (await mallory.get(path)).status == 404
    assert (await mallory.get(f"{path}/files/a.txt")).status == 404
    assert (await WebUser(web.url, web.http, "").get(f"{path}/files/a.txt")).status == 303


async def test_a_file_that_could_run_is_saved_and_never_shown(api: PublicApi, web: WebUser) -> None:
    check = await made(api.alice)
    page, picture = b"<script>alert(1)</script>", a_png(4, 3)
    files = (
        an_artifact("a.html", "file", page, "text/html"),
        an_artifact("a.png", "screenshot", picture, "image/png"),
        an_artifact("a.webm", "video", b"film", "video/webm"),
    )
    run_id = await store(api, check, passed(artifacts=files))
    keep(api, run_id, "a.html", page)
    keep(api, run_id, "a.webm", b"film")
    keep(api, run_id, "a.png", picture)
    path = await path_of_newest(api, check)

    hostile = await web.get(f"{path}/files/a.html")
    text = (await web.get(path)).text

    assert hostile.headers["content-disposition"].startswith("attachment")
    assert hostile.headers["content-security-policy"] == "sandbox"
    film = (await web.get(f"{path}/files/a.webm")).headers["content-security-policy"]
    assert film.startswith("default-src 'none'; media-src 'self'")
    assert 'width="4" height="3"' in text
    assert 'loading="lazy"' in text


EVERY_KIND = {type(one).__name__: one for one in EVIDENCE.values()}


async def a_browser_check(api: PublicApi) -> dict[str, Any]:
    answer = await api.alice.post("/v1/checks/browser", script_body("browser"))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def _a_check_for(api: PublicApi, evidence: Evidence) -> dict[str, Any]:
    kind = type(evidence).__name__
    if kind in {"BrowserEvidence", "MultiStepEvidence"}:
        slug = "browser" if kind == "BrowserEvidence" else "multistep"
        answer = await api.alice.post(f"/v1/checks/{slug}", script_body(slug))
    elif kind == "PlaywrightEvidence":
        body = suite_body(await a_bundle(api.alice))
        answer = await api.alice.post("/v1/checks/playwright", body)
    else:
        return await made(api.alice)
    assert answer.status == 201, answer.body
    return dict(answer.body)


@pytest.mark.parametrize("kind", EVERY_KIND)
async def test_each_kind_of_evidence_is_shown(api: PublicApi, web: WebUser, kind: str) -> None:
    evidence = EVERY_KIND[kind]
    check = await _a_check_for(api, evidence)
    await store(api, check, passed(evidence=evidence))
    await store(api, check, _broken(evidence), started_ms=START_MS + MINUTE_MS)
    path = await path_of_newest(api, check)

    answer = await web.get(path)
    other = answer.text.partition("?with=")[2].partition('"')[0]

    assert answer.status == 200
    assert (await web.get(f"{path}?with={other}")).status == 200


def _broken(evidence: Evidence) -> Outcome:
    failure = Failure(kind=FailureKind.CONNECT, message="It broke.", detail={"code": "ECONNRESET"})
    return Outcome(status=Status.FAILED, failure=failure, evidence=evidence)


def _rich() -> Outcome:
    """Everything that an HTTP result can have, with hostile texts wherever a target writes."""
    evidence = http_evidence(
        503,
        url=f"http://shop.test/{HOSTILE}",
        response_headers={"x-a": HOSTILE, "x-long": "long" * 200, "x-rtl": "\u202eabc \U0001f680"},
        body=f'{{"a": "{HIDDEN}", "b": [1, true, null], "c": "<script>alert(3)</script>"}}',
        hops=(
            Hop(url="javascript:alert(1)", status_code=302, location="/", total_ms=12),
            Hop(url=f"http://shop.test/{HOSTILE}", status_code=503, total_ms=40),
        ),
        tls=CERTIFICATE,
        remote_address="192.0.2.1",
    )
    return Outcome(
        status=Status.FAILED,
        response_time_ms=412,
        failure=Failure(kind=FailureKind.ASSERTION, message=HOSTILE, detail={HOSTILE: HOSTILE}),
        timings=Timings(wait=1, dns=12, tcp=8, tls=31, first_byte=340, download=20, total=412),
        assertions=(an_assertion(0, "ok"), an_assertion(1, HOSTILE, HOSTILE)),
        evidence=evidence,
        log=(
            LogLine(after_ms=3, level="WARN", message=HOSTILE),
            LogLine(after_ms=5, level="ERROR", message="broken"),
        ),
    )


async def _note_dialog(complaints: list[str], dialog: Dialog) -> None:
    complaints.append(f"a dialog: {dialog.message}")
    await dialog.dismiss()


@pytest.mark.parametrize("kind", ["http", "browser"])
async def test_pages_of_results_are_accessible_and_run_nothing_of_a_target(
    api: PublicApi, browser: Browser, web: WebUser, kind: str
) -> None:
    if kind == "http":
        check = await made(api.alice, name=HOSTILE)
        await store(api, check, passed(evidence=http_evidence()))
        await store(api, check, _rich(), started_ms=START_MS + MINUTE_MS)
    else:
        check = await _a_check_for(api, EVERY_KIND["BrowserEvidence"])
        picture = a_png(1280, 720)
        shot = an_artifact("a.png", "screenshot", picture, "image/png")
        for number in range(2):
            outcome = Outcome(
                status=Status.PASSED if number == 0 else Status.FAILED,
                failure=None if number == 0 else Failure(kind=FailureKind.SCRIPT, message=HOSTILE),
                evidence=EVERY_KIND["BrowserEvidence"],
                artifacts=(shot,),
            )
            run_id = await store(api, check, outcome, started_ms=START_MS + number * MINUTE_MS)
            keep(api, run_id, "a.png", picture)
    path = await path_of_newest(api, check)
    other = (await web.get(path)).text.partition("?with=")[2].partition('"')[0]
    for theme, width in VARIANTS:
        context = await browser.new_context(
            base_url=web.url, color_scheme=theme, viewport={"width": width, "height": 900}
        )
        await context.add_cookies([{"name": SESSION_COOKIE, "value": web.session, "url": web.url}])
        page = await context.new_page()
        complaints = collect_complaints(page)
        page.on("dialog", partial(_note_dialog, complaints))

        await page.goto(f"{path}?with={other}")

        assert await find_violations(page) == []
        assert complaints == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await context.close()


async def test_a_heartbeat_shows_its_pings(api: PublicApi, web: WebUser) -> None:
    check = await made(api.alice)
    silent = HeartbeatEvidence(silent_for_s=700, period_s=600, grace_s=60)
    await store(api, check, passed(evidence=silent))

    text = (await web.get(await path_of_newest(api, check))).text

    assert "The last ping was 11 min 40 s old." in text
    assert "a ping is due every 10 min" in text


async def test_a_long_message_is_a_short_heading_with_the_whole_below(
    api: PublicApi, web: WebUser
) -> None:
    message = 'Error: expect(page).toHaveTitle failed\n\nExpected: "Tea"\nReceived: "Tee"\nCall log'
    check = await made(api.alice)
    await store(api, check, failed(message))

    text = (await web.get(await path_of_newest(api, check))).text

    heading = text.partition("</h1>")[0].rpartition("</svg>")[2].strip()
    assert unescape(heading) == ('expect(page).toHaveTitle failed: expected "Tea", received "Tee"')
    assert "Call log" in text


async def test_the_error_of_a_script_is_a_short_heading(api: PublicApi, web: WebUser) -> None:
    error = ScriptError(message='Error: toHaveText failed\n\nExpected: "Tea"\nReceived: "Tee"\nLog')
    seen = BrowserEvidence(runtime_id="2026.04", errors=(error,), user_script_errors=1)
    message = 'Error: toHaveText failed (script.js:5:43) Expected: "Tea" Received: "Tee" Log'
    failure = Failure(kind=FailureKind.SCRIPT, message=message)
    check = await a_browser_check(api)
    await store(api, check, Outcome(status=Status.FAILED, failure=failure, evidence=seen))

    text = (await web.get(await path_of_newest(api, check))).text

    heading = text.partition("</h1>")[0].rpartition("</svg>")[2].strip()
    assert unescape(heading) == 'toHaveText failed: expected "Tea", received "Tee"'


async def test_a_run_can_be_repeated_and_its_check_edited(api: PublicApi, web: WebUser) -> None:
    check = await made(api.alice)
    await store(api, check, passed(12))
    path = await path_of_newest(api, check)
    text = (await web.get(path)).text
    assert f'action="/checks/{check["id"]}/run"' in text
    assert f'href="/checks/{check["id"]}/edit"' in text
    assert f"{api.url}/v1/check-results{path.removeprefix('/checks').replace('/results', '')}" in (
        unescape(text)
    )


async def test_a_run_of_a_check_that_does_not_run_on_demand_cannot_be_repeated(
    api: PublicApi, web: WebUser
) -> None:
    check = await made(api.alice, activated=False)
    await store(api, check, passed(12))
    assert "Run again" not in (await web.get(await path_of_newest(api, check))).text


async def test_the_runs_before_and_after_are_those_of_the_location(
    api: PublicApi, web: WebUser
) -> None:
    attic = await api.alice.post("/v1/private-locations", {"name": "Attic", "slugName": "attic"})
    check = await made(api.alice, privateLocations=["default", "attic"])
    here = await api.database.read(
        lambda c: locations.list_ids_by_slug(c, api.alice.secrets.account_id)
    )
    assert attic.status == 201
    paths = []
    for at, slug in enumerate(("default", "attic", "default", "attic")):
        moment = START_MS + at * MINUTE_MS
        run = a_record(check, location_id=here[slug], outcome=passed(), started_ms=moment)
        await store_all(api, [run])
        paths.append(await path_of_newest(api, check))

    first, middle = (await web.get(paths[0])).text, (await web.get(paths[2])).text

    assert f'<a rel="next" href="{paths[2]}"' in first
    assert 'rel="prev"' not in first
    assert f'<a rel="prev" href="{paths[0]}"' in middle
    assert 'rel="next"' not in middle


async def test_a_run_is_shown_as_the_api_answers_it(api: PublicApi, web: WebUser) -> None:
    check = await made(api.alice)
    await store(api, check, passed(12))
    path = await path_of_newest(api, check)
    mallory = await sign_in(api, (await api.another_user("Mallory")).secrets.api_key)

    assert f'href="{path}/api.json">In the API</a>' in (await web.get(path)).text
    shown = await web.get(f"{path}/api.json")
    assert shown.headers["content-type"] == "application/json"
    answer = await api.alice.get(f"/v1/check-results/{check['id']}/{path.rpartition('/')[2]}")
    assert json.loads(shown.text) == answer.body
    assert (await mallory.get(f"{path}/api.json")).status == 404


async def test_a_run_takes_as_long_on_its_page_as_in_the_list(api: PublicApi, web: WebUser) -> None:
    check = await made(api.alice)
    await store(api, check, passed(3_748), stopped_ms=START_MS + 3_790)

    listed = (
        await web.get(f"/checks/{check['id']}?from=2026-09-20T00:00&to=2026-10-01T00:00")
    ).text
    shown = (await web.get(await path_of_newest(api, check))).text

    assert '<td class="num">3.7 s</td>' in listed
    assert "3.7 s" in shown
    assert "3.8 s" not in shown
