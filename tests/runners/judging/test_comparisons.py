import operator
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.assertions import Comparison
from runners.judging.comparisons import (
    COMPARE,
    IncomparableError,
    equals,
    is_greater,
    is_less,
    parse_number,
    render_value,
)

C = Comparison
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def test_every_comparison_is_decided() -> None:
    assert set(COMPARE) == set(Comparison)


@pytest.mark.parametrize(
    ("value", "comparison", "target"),
    [
        (200, C.EQUALS, "200"),
        (200.0, C.EQUALS, "200"),
        (200, C.EQUALS, "2e2"),
        (200, C.EQUALS, " 200 "),
        ("200", C.EQUALS, "200"),
        (2**60 + 1, C.EQUALS, str(2**60 + 1)),
        (None, C.EQUALS, "null"),
        (True, C.EQUALS, "true"),
        ("", C.EQUALS, ""),
        ({"a": [1, {"b": None}]}, C.EQUALS, '{"a": [1.0, {"b": null}]}'),
        ([], C.EQUALS, "[]"),
        ([1], C.NOT_EQUALS, "[true]"),
        ([True], C.EQUALS, "[true]"),
        ([1, 2], C.NOT_EQUALS, "[1]"),
        ({"a": 1}, C.NOT_EQUALS, '{"b": 1}'),
        ({"a": 1}, C.NOT_EQUALS, "[1]"),
        ("200", C.NOT_EQUALS, "200.0"),
        (None, C.NOT_EQUALS, "0"),
        (False, C.NOT_EQUALS, "0"),
        (5, C.GREATER_THAN, "4.5"),
        ("5", C.GREATER_THAN, "4"),
        (5, C.LESS_THAN, "5.1"),
        (2**60 + 1, C.GREATER_THAN, str(2**60)),
        ({"a": None}, C.HAS_KEY, "a"),
        ({"a": 1}, C.NOT_HAS_KEY, "b"),
        ({"a": 1, "b": "x"}, C.HAS_VALUE, "x"),
        ({"a": 1, "b": "x"}, C.HAS_VALUE, "1"),
        ([1, "x", {"c": 2}], C.HAS_VALUE, '{"c":2}'),
        ([1], C.NOT_HAS_VALUE, "x"),
        ("", C.IS_EMPTY, ""),
        (None, C.IS_EMPTY, ""),
        ([], C.IS_EMPTY, ""),
        ({}, C.IS_EMPTY, ""),
        (0, C.NOT_EMPTY, ""),
        (False, C.NOT_EMPTY, ""),
        ([None], C.NOT_EMPTY, ""),
        ("hello", C.CONTAINS, "ell"),
        ("hello", C.NOT_CONTAINS, "elk"),
        (2001, C.CONTAINS, "200"),
        (True, C.CONTAINS, "tr"),
        (["a", 1], C.CONTAINS, "1"),
        (["ab"], C.NOT_CONTAINS, "a"),
        (None, C.IS_NULL, ""),
        ("", C.NOT_NULL, ""),
        ({}, C.NOT_NULL, ""),
    ],
)
def test_a_comparison_holds(value: Any, comparison: Comparison, target: str) -> None:
    assert COMPARE[comparison](value, target)
    if (opposite := OPPOSITES.get(comparison)) is not None:
        assert not COMPARE[opposite](value, target)


OPPOSITES = {
    one: other
    for pair in [
        (C.EQUALS, C.NOT_EQUALS),
        (C.HAS_KEY, C.NOT_HAS_KEY),
        (C.HAS_VALUE, C.NOT_HAS_VALUE),
        (C.IS_EMPTY, C.NOT_EMPTY),
        (C.CONTAINS, C.NOT_CONTAINS),
        (C.IS_NULL, C.NOT_NULL),
    ]
    for one, other in (pair, pair[::-1])
}


@pytest.mark.parametrize(
    ("value", "comparison", "target"),
    [
        (200, C.EQUALS, "OK"),
        (200, C.NOT_EQUALS, "OK"),
        (200, C.NOT_EQUALS, ""),
        (200, C.EQUALS, "2_00"),
        (200, C.EQUALS, "inf"),
        ({}, C.EQUALS, "{"),
        ([], C.NOT_EQUALS, "nope"),
        ("abc", C.GREATER_THAN, "1"),
        (True, C.GREATER_THAN, "0"),
        (None, C.LESS_THAN, "1"),
        ([5], C.GREATER_THAN, "1"),
        (5, C.LESS_THAN, "many"),
        ([], C.HAS_KEY, "a"),
        ("a", C.NOT_HAS_KEY, "a"),
        (1, C.HAS_VALUE, "1"),
        (None, C.NOT_HAS_VALUE, "1"),
        ({}, C.CONTAINS, "a"),
        (None, C.NOT_CONTAINS, "a"),
    ],
)
def test_what_does_not_go_together_is_told(value: Any, comparison: Comparison, target: str) -> None:
    with pytest.raises(IncomparableError):
        COMPARE[comparison](value, target)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e300, 1e300))
def test_numbers_compare_as_numbers(one: float, other: float) -> None:
    pairs: list[tuple[Callable[[Any, str], bool], Callable[[Any, Any], bool]]] = [
        (is_greater, operator.gt),
        (is_less, operator.lt),
        (equals, operator.eq),
    ]
    for ours, theirs in pairs:
        assert ours(one, repr(other)) == theirs(one, other)


@given(JSON)
def test_a_value_equals_its_own_text(value: Any) -> None:
    assert equals(value, render_value(value))


@given(JSON, st.sampled_from(Comparison), st.text())
def test_no_value_breaks_a_comparison(value: Any, comparison: Comparison, target: str) -> None:
    with suppress(IncomparableError):
        assert COMPARE[comparison](value, target) in (True, False)


@pytest.mark.parametrize("text", ["", "abc", "1_0", "nan", "inf", "-inf", "0x10", "9" * 5000])
def test_what_is_no_number_is_none(text: str) -> None:
    assert parse_number(text) is None


def test_a_long_text_is_no_number_and_is_not_remembered() -> None:
    long = "1" * 100_000
    holders = sys.getrefcount(long)
    assert parse_number(long) is None
    assert sys.getrefcount(long) == holders
