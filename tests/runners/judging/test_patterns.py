import pytest

from runners.judging.assertions import (
    MAX_PATTERN_CHARS,
    BadPatternError,
    compile_pattern,
    first_group,
)


@pytest.mark.parametrize(
    ("pattern", "text", "part"),
    [
        (r"version: (\d+)", "version: 42", "42"),
        (r"\d+", "version: 42", "42"),
        (r"(?:v)(\d)(\d)", "v42", "4"),
        (r"(x)?y", "y", None),
        (r"z", "y", None),
        (r"caf(.)", "café", "é"),
        (r"(?i)HELLO", "hello", "hello"),
        ("a", "\ud800a", "a"),
    ],
)
def test_the_first_group_counts_or_else_the_whole_match(
    pattern: str, text: str, part: str | None
) -> None:
    assert first_group(pattern, text) == part


@pytest.mark.parametrize("pattern", ["(", "[", "a++"])
def test_a_pattern_that_is_none_is_told(pattern: str) -> None:
    with pytest.raises(BadPatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?<!a)b", r"(a)\1"])
def test_what_the_engine_lacks_is_named(pattern: str) -> None:
    with pytest.raises(BadPatternError, match="look-around and back-references"):
        compile_pattern(pattern)


def test_an_endless_pattern_is_refused() -> None:
    with pytest.raises(BadPatternError, match="use at most 10000"):
        compile_pattern("a" * (MAX_PATTERN_CHARS + 1))


def test_no_pattern_can_run_away() -> None:
    assert first_group("^(a+)+$", "a" * 100_000 + "!") is None
