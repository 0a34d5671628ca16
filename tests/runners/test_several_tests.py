"""A script of several tests: each is told, with its errors, and so is what did not run."""

from zipfile import ZipFile

import pytest

from contract.result import Outcome, Status
from tests.builders.browser_checks import evidence, look, looked
from tests.builders.scripts import a_scripted_context, runtimes_here

IMPORT = "import { test, expect } from '@playwright/test';\n"
every_runtime = pytest.mark.parametrize("runtime_id", runtimes_here().installed)


def first_trace(outcome: Outcome) -> str:
    return next(one.name for one in outcome.artifacts if one.kind == "trace")


@every_runtime
async def test_all_errors_are_told_with_test_place_and_frame(runtime_id: str) -> None:
    script = (
        "test('pours', () => {});\n"
        "test.describe('shop', () => {\n"
        "  test('adds', () => {\n"
        "    expect.soft(1).toBe(2);\n"
        "    expect(3).toBe(4);\n"
        "  });\n"
        "});\n"
        "test('throws', () => { throw new Error('cold'); });\n"
    )
    outcome = await looked(IMPORT + script, runtime_id=runtime_id)
    seen = evidence(outcome)
    assert [(one.title, one.status) for one in seen.tests] == [
        ("pours", "passed"),
        ("shop \u203a adds", "failed"),
        ("throws", "failed"),
    ]
    assert [(one.test, one.where, one.is_soft) for one in seen.errors] == [
        ("shop \u203a adds", "script.js:5:20", True),
        ("shop \u203a adds", "script.js:6:15", False),
        ("throws", "script.js:9:30", False),
    ]
    assert "> 5 |     expect.soft(1).toBe(2);" in (seen.errors[0].frame or "")
    assert outcome.failure is not None
    assert "This is the test “shop \u203a adds”; 2 of 3 tests failed." in outcome.failure.message


async def test_the_first_trace_is_that_of_the_failure(site: str) -> None:
    opens = f"async ({{ page }}) => {{ await page.goto('{site}/plain');"
    script = f"test('a', {opens} }});\ntest('b', {opens} expect(1).toBe(2); }});\n"
    async with a_scripted_context(keeps_files=True) as ctx:
        outcome = await look(ctx, IMPORT + script)
        with ZipFile(ctx.workspace.folder / first_trace(outcome)) as trace:
            steps = trace.read("test.trace")
    assert [one.kind for one in outcome.artifacts].count("trace") == 2
    assert b"toBe(" in steps


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("test.skip('a', () => {}); test.fixme('b', () => {});", "No test ran: all 2 are skipped."),
        ("test('a', () => { test.skip(); });", "No test ran: the only one is skipped."),
        (
            "test.only('a', () => {}); test('b', () => {});",
            "`only` is left in the script: it ran 1",
        ),
        (
            "test.describe.only('a', () => { test('b', () => {}); });",
            "`only` is left in the script",
        ),
    ],
)
@every_runtime
async def test_a_pass_of_tests_that_did_not_run_is_degraded(
    script: str, says: str, runtime_id: str
) -> None:
    outcome = await looked(IMPORT + script, runtime_id=runtime_id)
    assert outcome.status is Status.DEGRADED
    assert (outcome.degraded_because or "").startswith(says)


async def test_one_skipped_test_among_others_is_no_gap() -> None:
    outcome = await looked(IMPORT + "test.skip('a', () => {}); test('b', () => {});")
    assert outcome.status is Status.PASSED
