import re

import pytest

from service.variables.rules import (
    KEY_PATTERN,
    MAX_TOGETHER_BYTES,
    MAX_VALUE_BYTES,
    find_repeated,
    together_problem,
    value_problem,
)


@pytest.mark.parametrize("key", ["A", "API_URL", "api.url", "a-b", "1A", "_"])
def test_a_key_is_what_a_template_and_a_program_can_name(key: str) -> None:
    assert re.fullmatch(KEY_PATTERN, key)


@pytest.mark.parametrize("key", ["", ".", "..", "-a", "a b", "a=b", "a/b", "{{A}}", "ä", "a\0"])
def test_anything_else_is_none(key: str) -> None:
    assert not re.fullmatch(KEY_PATTERN, key)


def test_a_value_is_counted_in_bytes() -> None:
    assert value_problem("x" * MAX_VALUE_BYTES) is None
    assert value_problem("x" * (MAX_VALUE_BYTES + 1)) is not None
    assert value_problem("ä" * (MAX_VALUE_BYTES // 2)) is None
    assert value_problem("ä" * (MAX_VALUE_BYTES // 2 + 1)) is not None


def test_all_variables_of_one_owner_fit_into_a_programs_environment() -> None:
    assert together_problem(MAX_TOGETHER_BYTES) is None
    assert together_problem(MAX_TOGETHER_BYTES + 1) is not None


def test_the_first_key_that_comes_again_is_told() -> None:
    assert find_repeated(["A", "B", "a"]) is None
    assert find_repeated(["A", "B", "B", "A"]) == "B"
