"""A test command is run as written, and only what it leaves open is filled in."""

import pytest

from runners.scripting.suites.project import (
    CommandError,
    choose_added_arguments,
    find_named_config,
    parse_playwright_arguments,
)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("npx playwright test", ()),
        ("  npx  playwright   test --project a --project b ", ("--project", "a", "--project", "b")),
        ("npx playwright test --grep '@smoke|@login'", ("--grep", "@smoke|@login")),
        ('npx playwright test -g "a (b) $"', None),
        ('npx playwright test -g "a (b)"', ("-g", "a (b)")),
        ("npx --yes playwright test x.spec.ts", ("x.spec.ts",)),
        ("pnpm exec playwright test", ()),
        ("pnpm playwright test --workers=1", ("--workers=1",)),
        ("yarn playwright test", ()),
        ("playwright test", ()),
        ("npm run e2e", None),
        ("npx playwright test && echo done", None),
        ("BASE=x npx playwright test", None),
        ("npx playwright test > out.txt", None),
        ("npx playwright test tests/*.spec.ts", None),
        ("npx playwright test $ARGS", None),
        ("npx playwright show-report", None),
        ("node run.js", None),
    ],
)
def test_only_what_a_shell_would_not_change_is_started_without_one(
    command: str, arguments: tuple[str, ...] | None
) -> None:
    assert parse_playwright_arguments(command) == arguments


@pytest.mark.parametrize(
    ("command", "said"),
    [("", "is empty"), ("   ", "is empty"), ("npx playwright test -g 'x", "quotation without end")],
)
def test_a_command_that_is_none_is_refused_with_a_sentence(command: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        parse_playwright_arguments(command)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), None),
        (("--config", "e2e.config.ts"), "e2e.config.ts"),
        (("--config=e2e.config.ts", "x"), "e2e.config.ts"),
        (("-c", "e2e"), "e2e"),
        (("-c",), None),
        (("--workers", "1"), None),
    ],
)
def test_a_configuration_is_named_by_its_option(words: tuple[str, ...], named: str | None) -> None:
    assert find_named_config(words) == named


@pytest.mark.parametrize(
    ("texts", "added"),
    [
        ((), ("--workers", "4", "--retries", "2")),
        (("export default { retries: 0 }",), ("--workers", "4")),
        (("workers: process.env.CI ? 1 : undefined,", "retries: 1"), ()),
        (("npx playwright test --workers=1",), ("--retries", "2")),
        (("npx playwright test -j 2",), ("--retries", "2")),
        (("{ scripts: 'playwright test --retries 0' }",), ("--workers", "4")),
    ],
)
def test_what_a_suite_says_itself_is_not_overruled(
    texts: tuple[str, ...], added: tuple[str, ...]
) -> None:
    assert choose_added_arguments(texts, is_complete=True) == ("--trace", "on", *added)


def test_nothing_is_assumed_of_what_could_not_be_read() -> None:
    assert choose_added_arguments((), is_complete=False) == ("--trace", "on")


@pytest.mark.parametrize("command", ["npx playwright test a\0b", "x" * 50_001])
def test_a_command_that_linux_would_not_start_is_refused(command: str) -> None:
    with pytest.raises(CommandError, match="has a NUL, or more than 50000 characters"):
        parse_playwright_arguments(command)
