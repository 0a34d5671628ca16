import pytest

from runners.scripting.node.runtimes import suggest_module


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "Error: Cannot find module '@faker-js/fakerr' (a.spec.ts:2:1)",
            "which GET /v1/runtimes lists; did you mean @faker-js/faker?",
        ),
        ("Error: Cannot find package 'left-pad' imported from a.mjs", "GET /v1/runtimes lists."),
        ("Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'axois' x", "did you mean axios?"),
        ("Error: left-pad is not a library of this runtime", "GET /v1/runtimes lists."),
        ("Error: Cannot find module './pages/login'", "or in `dependencyFiles` of a check file."),
    ],
)
def test_a_missing_module_is_told_with_where_modules_come_from(message: str, told: str) -> None:
    assert (suggest_module(message) or "").endswith(told)


def test_other_errors_are_told_as_they_are() -> None:
    assert suggest_module("Error: expect(received).toBe(expected)") is None


def test_what_a_target_says_of_its_own_modules_is_no_advice() -> None:
    shown = (
        "Error: expect(received).toBe(expected)\n\nReceived: \"500: Cannot find module 'express'\""
    )
    assert suggest_module(shown) is None


def test_a_module_that_is_little_like_a_library_is_not_taken_for_it() -> None:
    assert (suggest_module("Error: Cannot find module 'express'") or "").endswith("lists.")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Error: Cannot find module '@elastic/synthetics' (a.ts:1:1)", "becomes `test('…', async"),
        ("Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'k6' x", "becomes a MULTI_STEP check"),
        ("Error: Cannot find module 'k6/http'", "becomes a MULTI_STEP check"),
        ("Error: Cannot find module 'puppeteer-core'", "becomes one of Playwright"),
        ("Error: puppeteer is not a library of this runtime", "becomes one of Playwright"),
    ],
)
def test_a_library_of_another_product_is_told_with_what_to_write_instead(
    message: str, told: str
) -> None:
    assert told in (suggest_module(message) or "")
