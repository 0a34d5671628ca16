from typing import Any

import pytest

from contract.evidence import (
    BrowserEvidence,
    MultiStepEvidence,
    PageMetrics,
    PageSeen,
    PlaywrightEvidence,
    RequestNode,
    RequestTimings,
    ScriptError,
    ScriptTest,
    StepSeen,
    SuiteTest,
    TestCounts,
    TlsFacts,
)
from contract.result import Artifact, ArtifactKind, Evidence, LogLine, Outcome, Status
from service.results.shapes import BrowserResultShown, MultiStepResultShown, PlaywrightResultShown
from service.results.views import score
from tests.builders.check_bodies import script_body
from tests.builders.code_bundles import a_bundle, suite_body
from tests.builders.stored_results import START_MS, store
from tests.servers.public_api import ApiUser, PublicApi

PAGE = PageSeen(
    index=0,
    url="http://shop.test/",
    metrics=PageMetrics(ttfb_ms=100, fcp_ms=2000, lcp_ms=5000, cls=0.1, load_ms=900),
    console_errors=5,
    network_errors=3,
    document_errors=2,
)
BROWSER = BrowserEvidence(
    runtime_id="2026.04",
    playwright="1.65.1",
    pages=(PAGE, PageSeen(index=1, url="http://shop.test/cart", console_errors=1)),
    tests=(ScriptTest(title="buys", status="failed", outcome="unexpected", took_ms=5),),
    errors=(ScriptError(message="expected 1", where="script.js:5:14", test="buys", frame="> 5"),),
    user_script_errors=1,
    ssl_check_domain="shop.test",
    tls=TlsFacts(verified=True, days_to_expiry=29.5),
)


def artifact(name: str, kind: ArtifactKind) -> Artifact:
    return Artifact(name=name, kind=kind, size_bytes=3, sha256="ab" * 32)


def outcome(evidence: Evidence | None, *artifacts: Artifact) -> Outcome:
    return Outcome(
        status=Status.PASSED,
        response_time_ms=1500,
        evidence=evidence,
        artifacts=artifacts,
        log=(LogLine(after_ms=3, level="WARN", message="hello"),),
    )


async def made(user: ApiUser, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{kind}", body)
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def only_result(
    api: PublicApi, user: ApiUser, check: dict[str, Any], result: Outcome
) -> dict[str, Any]:
    await store(api, check, result)
    (listed,) = (await user.get(f"/v1/check-results/{check['id']}")).body
    read = await user.get(f"/v1/check-results/{check['id']}/{listed['id']}")
    assert read.body == listed
    return dict(read.body)


async def test_a_browser_result_shows_pages_with_vitals_and_errors(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await made(alice, "browser", script_body("browser"))
    files = (
        artifact("trace.zip", "trace"),
        artifact("video.webm", "video"),
        artifact("test-results.json", "report"),
    )
    result = await only_result(api, alice, check, outcome(BROWSER, *files))
    seen = result["browserCheckResult"]
    BrowserResultShown.model_validate(seen)
    assert result["multiStepCheckResult"] is None
    assert seen["type"] == "PLAYWRIGHT_TEST"
    assert seen["runtimeVersion"] == "2026.04"
    assert seen["traceSummary"] == {
        "consoleErrors": 6,
        "networkErrors": 3,
        "documentErrors": 2,
        "userScriptErrors": 1,
    }
    first = seen["pages"][0]
    assert first["webVitals"] == {
        "TTFB": {"value": 100, "score": "GOOD"},
        "FCP": {"value": 2000, "score": "NEEDS_IMPROVEMENT"},
        "LCP": {"value": 5000, "score": "POOR"},
        "CLS": {"value": 0.1, "score": "GOOD"},
        "TBT": None,
    }
    assert first["pageTimings"] == {"onContentLoad": None, "onLoad": 900}
    error = seen["errors"][0]
    assert (error["where"], error["test"], error["frame"]) == ("script.js:5:14", "buys", "> 5")
    assert [(one["title"], one["status"]) for one in seen["tests"]] == [("buys", "failed")]
    assert (seen["tls"]["verified"], seen["tls"]["daysToExpiry"]) == (True, 29.5)
    assert seen["jobLog"] == [{"time": START_MS + 3, "msg": "hello", "level": "WARN"}]
    assert seen["jobAssets"] == ["trace.zip", "video.webm", "test-results.json"]
    at = f"/v1/check-results/{check['id']}/{result['id']}/assets"
    assert seen["playwrightTestTraces"] == [f"{at}/trace.zip"]
    assert seen["playwrightTestVideos"] == [f"{at}/video.webm"]
    assert seen["playwrightTestJsonReportFile"] == f"{at}/test-results.json"
    assert (seen["startTime"], seen["endTime"]) == (START_MS, START_MS + 250)


async def test_a_multi_step_result_shows_its_requests(api: PublicApi, alice: ApiUser) -> None:
    check = await made(alice, "multistep", script_body("multistep"))
    evidence = MultiStepEvidence(
        runtime_id="2026.04",
        requests=(
            RequestNode(
                method="GET",
                url="http://shop.test/",
                started_after_ms=10,
                status_code=200,
                timings=RequestTimings(dns=1, total=20),
            ),
        ),
        steps=(StepSeen(title="get", category="pw:api", started_after_ms=9, took_ms=21),),
    )
    result = await only_result(api, alice, check, outcome(evidence))
    seen = result["multiStepCheckResult"]
    MultiStepResultShown.model_validate(seen)
    assert seen["type"] == "PLAYWRIGHT"
    assert seen["requests"][0]["timings"] == {"dns": 1, "total": 20}
    assert seen["steps"][0]["title"] == "get"
    assert "pages" not in seen


async def test_a_suites_result_shows_its_tests(api: PublicApi, alice: ApiUser) -> None:
    check = await made(alice, "playwright", suite_body(await a_bundle(alice)))
    evidence = PlaywrightEvidence(
        playwright_version="1.58.2",
        node_version="24.19.0",
        counts=TestCounts(planned=2, passed=1, flaky=1),
        tests=(
            SuiteTest(
                project="chromium",
                title="buys",
                file="shop.spec.ts",
                line=3,
                status="passed",
                outcome="expected",
                took_ms=900,
            ),
        ),
    )
    result = await only_result(api, alice, check, outcome(evidence))
    seen = result["playwrightCheckResult"]
    PlaywrightResultShown.model_validate(seen)
    assert seen["counts"]["flaky"] == 1
    assert seen["tests"][0]["project"] == "chromium"
    assert (seen["playwrightVersion"], seen["nodeVersion"]) == ("1.58.2", "24.19.0")


@pytest.mark.parametrize(
    ("kind", "key"), [("browser", "browserCheckResult"), ("multistep", "multiStepCheckResult")]
)
async def test_a_run_that_saw_nothing_still_has_its_log(
    api: PublicApi, alice: ApiUser, kind: str, key: str
) -> None:
    check = await made(alice, kind, script_body(kind))
    seen = (await only_result(api, alice, check, outcome(None)))[key]
    assert seen["runtimeVersion"] is None
    assert seen["jobLog"][0]["msg"] == "hello"


@pytest.mark.parametrize(
    ("name", "value", "worth"),
    [
        ("TTFB", 800, "GOOD"),
        ("TTFB", 801, "NEEDS_IMPROVEMENT"),
        ("TTFB", 1801, "POOR"),
        ("CLS", 0.25, "NEEDS_IMPROVEMENT"),
        ("CLS", 0.26, "POOR"),
        ("TBT", 200, "GOOD"),
    ],
)
def test_a_measure_is_worth_what_its_makers_say(name: str, value: float, worth: str) -> None:
    assert score(name, value) == worth


async def test_an_api_checks_log_stands_by_phase_with_times_and_levels(
    api: PublicApi, alice: ApiUser
) -> None:
    request = {"method": "GET", "url": "http://shop.test/"}
    check = await made(
        alice, "api", {"name": "Shop", "request": request, "privateLocations": ["default"]}
    )
    lines = (
        LogLine(after_ms=1, level="DEBUG", message="first", phase="setup"),
        LogLine(after_ms=2.6, level="INFO", message="sent"),
        LogLine(after_ms=4, level="WARN", message="odd", phase="request"),
        LogLine(after_ms=5, level="ERROR", message="last", phase="teardown"),
    )
    await store(api, check, Outcome(status=Status.PASSED, log=lines))
    seen = (await alice.get(f"/v1/check-results/{check['id']}")).body[0]["apiCheckResult"]
    assert seen["jobLog"] == {
        "setup": [{"time": START_MS + 1, "msg": "first", "level": "DEBUG"}],
        "request": [
            {"time": START_MS + 3, "msg": "sent", "level": "INFO"},
            {"time": START_MS + 4, "msg": "odd", "level": "WARN"},
        ],
        "teardown": [{"time": START_MS + 5, "msg": "last", "level": "ERROR"}],
    }
