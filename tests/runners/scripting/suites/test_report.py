"""The report has the shape of Playwright's own."""

import msgspec

from contract.evidence import PlaywrightEvidence, SuiteTest
from runners.scripting.suites.artifacts import build_report


def a_test(project: str, outcome: str = "expected") -> SuiteTest:
    return SuiteTest(
        project=project,
        title="buys",
        file="a.spec.ts",
        line=3,
        status="passed",
        outcome=outcome,  # type: ignore[arg-type]  # a word of the wire's
        took_ms=5,
        errors=("boom",) if outcome == "unexpected" else (),
    )


def test_a_test_of_two_projects_is_one_spec_with_two_tests() -> None:
    seen = PlaywrightEvidence(
        playwright_version="1.65.1",
        node_version="24",
        tests=(a_test("chromium"), a_test("mobile", "unexpected")),
        errors=("teardown",),
    )
    report = build_report(seen, took_ms=12.5)
    (file,) = report["suites"]
    (spec,) = file["specs"]
    assert (file["file"], spec["title"], spec["ok"]) == ("a.spec.ts", "buys", False)
    assert [test["projectName"] for test in spec["tests"]] == ["chromium", "mobile"]
    assert spec["tests"][1]["results"][0]["errors"] == [{"message": "boom"}]
    assert report["stats"] == {
        "duration": 12.5,
        "expected": 1,
        "unexpected": 1,
        "flaky": 0,
        "skipped": 0,
    }
    assert report["errors"] == [{"message": "teardown"}]


def test_a_test_that_was_stopped_is_not_ok_though_playwright_calls_it_skipped() -> None:
    test = msgspec.structs.replace(a_test("chromium", "skipped"), status="interrupted")
    seen = PlaywrightEvidence(node_version="24", tests=(test,))
    report = build_report(seen, took_ms=1)
    (spec,) = report["suites"][0]["specs"]
    assert (spec["ok"], spec["tests"][0]["status"]) == (False, "unexpected")
    assert report["stats"]["unexpected"] == 1
    assert report["stats"]["skipped"] == 0
