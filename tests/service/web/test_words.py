"""Times, durations and numbers as people read them."""

import pytest

from service.web.words import (
    NOTHING,
    format_age,
    format_bytes,
    format_clock,
    format_duration,
    format_moment,
    format_percent,
    format_plural,
    shorten_message,
)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, NOTHING),
        (0, "0 ms"),
        (0.4, "<1 ms"),
        (412.4, "412 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (3_800, "3.8 s"),
        (9_949, "9.9 s"),
        (9_950, "10 s"),
        (59_400, "59 s"),
        (59_600, "1 min"),
        (130_000, "2 min 10 s"),
        (3_599_900, "1 h"),
        (11_100_000, "3 h 5 min"),
        (352_800_000, "4 d 2 h"),
    ],
)
def test_a_duration_has_two_units_at_most_and_never_sixty_seconds(
    ms: float | None, text: str
) -> None:
    assert format_duration(ms) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (None, NOTHING),
        (1, "100 %"),
        (0.999_999, "99.99 %"),
        (0.9998, "99.98 %"),
        (2 / 3, "66.67 %"),
        (1 / 3, "33.33 %"),
        (0.991, "99.1 %"),
        (0.42, "42 %"),
        (0, "0 %"),
        (0.29, "29 %"),
    ],
)
def test_what_was_not_always_well_is_never_a_hundred_percent(
    ratio: float | None, text: str
) -> None:
    assert format_percent(ratio) == text


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [(-500, "now"), (999, "now"), (40_000, "40 s"), (3_599_999, "59 min"), (400_000_000, "4 d")],
)
def test_an_age_has_one_unit_and_is_never_rounded_up(age_ms: float, text: str) -> None:
    assert format_age(age_ms) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, NOTHING), (0, "0 B"), (999, "999 B"), (1_400, "1.4 kB"), (12_000_000, "12 MB")],
)
def test_a_size_has_the_unit_that_keeps_it_short(number: int | None, text: str) -> None:
    assert format_bytes(number) == text


def test_a_clock_leaves_out_the_date_of_today() -> None:
    at_ms = 1_795_748_412_345

    assert format_clock(at_ms, now_ms=at_ms + 3_600_000) == "03:00:12"
    assert format_clock(at_ms, now_ms=at_ms + 86_400_000) == "2026-11-27 03:00:12"


def test_a_moment_says_its_zone() -> None:
    assert format_moment(1_795_748_412_345) == "2026-11-27 03:00:12 UTC"


def test_one_thing_has_no_plural() -> None:
    assert format_plural(1, "run") == "1 run"
    assert format_plural(14_203, "run") == "14,203 runs"
    assert format_plural(2, "reply", "replies") == "2 replies"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["Error: toHaveText failed", "", 'Expected: "a"', 'Received: "b"', "Call log:"],
         'toHaveText failed: expected "a", received "b"'),
        (["Error: toHaveText failed", 'Expected: "a"', "Error: element(s) not found", "Call log:"],
         'toHaveText failed: expected "a", element(s) not found'),
        (["The response status is 500."], "The response status is 500."),
        (["x" * 400], "x" * 300 + "\N{HORIZONTAL ELLIPSIS}"),
        ([""], ""),
    ],
)  # fmt: skip
def test_a_message_of_many_lines_is_told_in_one(lines: list[str], said: str) -> None:
    assert shorten_message("\n".join(lines)) == said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("STATUS_CODE should equal 200, but it is 503.",
         "Status code should equal 200, but it is 503."),
        ('JSON_BODY `$.a` should equal "STATUS_CODE should ", but it is 1.',
         'JSON body `$.a` should equal "STATUS_CODE should ", but it is 1.'),
        ("The first 10 bytes of TEXT_BODY should contain `x`, but they do not.",
         "The first 10 bytes of text body should contain `x`, but they do not."),
        ("The page says STATUS_CODE.", "The page says STATUS_CODE."),
    ],
)  # fmt: skip
def test_a_sentence_names_what_an_assertion_tests_in_words(message: str, said: str) -> None:
    assert shorten_message(message) == said
