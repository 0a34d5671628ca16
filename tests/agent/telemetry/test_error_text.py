"""An error's text holds nothing but what stands in our own source code."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.telemetry.error_reports import clean_event, format_message, format_stack

STRANGERS = [
    "https://shop.internal/checkout?token=abc",
    "shop.internal",
    "10.11.12.13",
    "2001:db8::17",
    "pl_abcdef123456",
    "joe@example.org",
    "x-tenant: blue42",
    '{"balance": 4711}',
    "<html>welcome</html>",
    "hunter2",
    "4711",
]


def fail(text: object) -> None:
    raise RuntimeError(f"the service answered {text} instead of results")


def raised(text: object) -> BaseException:
    """An exception as our code raises it: constant words around a foreign text."""
    with pytest.raises(RuntimeError) as caught:
        fail(text)
    return caught.value


@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_an_exception_quotes_is_left_out(stranger: str) -> None:
    assert format_message(raised(stranger)) == (
        "RuntimeError: the service answered … instead of results"
    )


@given(st.text(min_size=4).filter(lambda text: text.strip() == text))
def test_no_foreign_text_passes(stranger: str) -> None:
    known = "RuntimeError: the service answered … instead of results"
    left = format_message(raised(f"zq{stranger}qz")).replace(known, "")
    assert f"zq{stranger}qz" not in left


def test_the_interpreters_own_messages_stay_readable() -> None:
    with pytest.raises(AttributeError) as caught:
        None.missing  # type: ignore[attr-defined]  # noqa: B018 - the error is the case
    assert (
        format_message(caught.value) == "AttributeError: NoneType object has no attribute missing"
    )


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_value_in_an_interpreters_message_is_left_out(stranger: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is what is looked at
        int(stranger if not stranger.isdigit() else f"x{stranger}")
    assert format_message(caught.value) == "ValueError: invalid … for int with …"


def test_a_system_error_names_neither_host_nor_file() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        Path("/etc/secret-of-joe").read_text()
    assert format_message(caught.value) == "FileNotFoundError: [Errno 2] No such file or directory"


def test_the_stack_shows_our_files_and_functions_but_no_values() -> None:
    stack = format_stack(raised("hunter2"))
    *_, first, last = stack.splitlines()
    assert first.startswith("  tests/agent/telemetry/test_error_text.py:")
    assert first.endswith(" in fail")
    assert last == "RuntimeError: the service answered … instead of results"


def test_libraries_are_shown_relative_to_themselves() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        asyncio.run(_divided())
    stack = format_stack(caught.value)
    assert "  asyncio/runners.py:" in stack
    assert "/lib/python" not in stack


async def _divided() -> float:
    return 1 / 0


def test_causes_and_group_members_are_part_of_the_stack() -> None:
    secret = STRANGERS[-2]
    try:
        try:
            raise raised(secret)
        except RuntimeError as problem:
            raise ExceptionGroup(secret, [problem, KeyError(secret)]) from problem
    except ExceptionGroup as group:
        stack = format_stack(group)
    assert "which led to" in stack
    assert "ExceptionGroup: 2 exceptions" in stack
    assert "one of the group:\nKeyError: …" in stack
    assert secret not in stack


def test_a_cause_that_points_at_itself_ends() -> None:
    error = raised("x")
    other = ValueError()
    error.__cause__, other.__cause__ = other, error
    assert format_stack(error).count("which led to") == 1


def test_an_exception_that_cannot_say_itself_is_still_named() -> None:
    class Broken(Exception):  # noqa: N818 - what it is called does not matter
        def __str__(self) -> str:
            raise ValueError

    assert format_message(Broken()).endswith("Broken")


def test_an_endless_message_is_cut() -> None:
    deep = RuntimeError("x")
    for _ in range(50):
        outer = RuntimeError("y" * 10_000)
        outer.__cause__ = deep
        deep = outer
    assert len(format_stack(deep)) <= 8_000


@pytest.mark.parametrize("event", ["job.crashed", "agent.spool.full", "boot.check_failed"])
def test_an_event_name_stays(event: str) -> None:
    assert clean_event(event) == event


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("Error handling request from %s", "Error handling request from …"),
        ("Task exception was never retrieved", "Task exception was never retrieved"),
        ("Unclosed client session <aiohttp 10.0.0.1>", "Unclosed client session …"),
        ("job of shop.example.com.internal crashed", "… of …"),
    ],
)
def test_any_other_log_line_keeps_only_common_words(line: str, kept: str) -> None:
    assert clean_event(line) == kept
