"""That a test's time was up is told before the error that came of it."""

import pytest

from runners.scripting.playwright.verdict import add_time_up, is_time_up

UP = "Test timeout of 4000ms exceeded."


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UP, True),
        ('"afterEach" hook timeout of 4000ms exceeded.', True),
        ('Fixture "shop" timeout of 10ms exceeded during teardown.', True),
        ("Error: page.click: Test timeout of 4000ms exceeded.", False),
        ("Error: Timeout 4000ms exceeded.", False),
    ],
)
def test_a_tests_limit_is_known_by_its_words(error: str, *, expected: bool) -> None:
    assert is_time_up(error) is expected


def test_the_time_out_comes_first_and_with_its_step() -> None:
    gone = "Error: Request context disposed. (s.js:3:4)\nCall log:"
    assert add_time_up(UP, gone) == f"Test timeout of 4000ms exceeded: {gone}"
    told = f"Test timeout of 4000ms exceeded in “GET /”: {gone}"
    assert add_time_up(UP, gone, step="GET /") == told


def test_a_time_out_is_told_once() -> None:
    both = "Error: page.click: Test timeout of 4000ms exceeded. (s.js:3:4)"
    assert add_time_up(UP, both, step="Click") == both
