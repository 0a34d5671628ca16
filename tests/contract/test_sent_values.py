import math

import pytest

from contract.targets import format_value, kind_of


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((80, "80"), (0.5, "0.5"), (1e20, "1e+20"), (True, "true"), (None, "null")),
        *(("mars-1", "mars-1"), ("My Cellar", "My Cellar"), ("", "empty"), (" ", "blank")),
        *(([1], "an array"), ({}, "an object"), (math.nan, "not a finite number")),
    ],
)
def test_a_value_is_told_as_it_was_sent(value: object, shown: str) -> None:
    assert format_value(value) == shown


def test_a_number_too_long_to_be_written_is_told_as_that() -> None:
    assert format_value(10**5000) == format_value(-(10**400)) == "too large a number"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *(("pl_hush", "a text"), ("CU_hush", "a text"), ("https://a.test/hush", "a text")),
        *(("me:hush@a", "a text"), ("a\nb", "a text"), ("x" * 61, "a text of 61 characters")),
    ],
)
def test_what_may_be_a_secret_is_told_by_its_kind(value: str, shown: str) -> None:
    assert format_value(value) == shown


def test_every_kind_has_a_name() -> None:
    kinds = [kind_of(value) for value in (True, 1, "a", {}, [], None)]
    assert kinds == ["a boolean", "a number", "a text", "an object", "an array", "null"]
