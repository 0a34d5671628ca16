"""Expressions find bytes: the longest in the first place, over bytes and not characters."""

from redaction.compiled import (
    LIMIT_CHARS,
    compile_forms,
    compile_once,
    contains_form,
    find_overlapping,
    find_separate,
)


def test_the_longest_of_those_that_begin_in_one_place_is_found() -> None:
    [expression] = compile_forms(["ab", "abcd", "abc"])
    found = expression.search(b"xabcdx")
    assert found is not None
    assert found.span() == (1, 5)


def test_forms_are_code_points_of_bytes_and_a_dot_is_any_of_them() -> None:
    [expression] = compile_forms(["\\xe9.\\x00"])
    assert expression.fullmatch(b"\xe9\n\0") is not None
    assert expression.search("é".encode()) is None


def test_overlapping_places_are_all_told_and_those_apart_once() -> None:
    [expression] = compile_forms(["abab"])
    assert list(find_overlapping(expression, b"ababab")) == [(0, 4), (2, 6)]
    assert list(find_separate(expression, b"abababab")) == [(0, 4), (4, 8)]


def test_forms_that_are_too_many_for_one_expression_are_all_found() -> None:
    forms = [f"{number:04}{'x' * (LIMIT_CHARS // 8)}" for number in range(20)]
    expressions = compile_forms([*forms, *forms])
    assert 1 < len(expressions) < len(forms)
    for form in forms:
        assert sum(one.search(form.encode()) is not None for one in expressions) == 1


def test_expressions_may_be_wanted_smaller() -> None:
    forms = [f"{number:04}" for number in range(20)]
    assert (len(compile_forms(forms)), len(compile_forms(forms, limit_chars=8))) == (1, 10)


def test_a_form_that_is_longer_than_the_limit_stands_alone() -> None:
    long = "y" * (LIMIT_CHARS + 1)
    first, second, third = compile_forms(["a", long, "b"])
    assert first.search(b"a") is not None
    assert second.fullmatch(long.encode()) is not None
    assert third.search(b"b") is not None


def test_no_forms_are_no_expression() -> None:
    assert compile_forms([]) == ()


def test_what_is_always_the_same_is_compiled_once() -> None:
    assert compile_once("hunter") is compile_once("hunter")
    assert contains_form("hun.er", b"a hun\ner b")
    assert not contains_form("hun.er", b"a hunr")
