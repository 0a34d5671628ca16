"""What the page on moving says works is what a test shows."""

import re

import pytest

from tests.clients.command_line import five_variables
from tests.docs.test_docs import ROOT

PAGE = (ROOT / "docs/moving.md").read_text()
TESTS = re.findall(r"^\| .+ \| `(test_\w+\.py)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(set(TESTS)))
def test_each_line_of_what_works_names_a_test_that_there_is(name: str) -> None:
    assert (ROOT / "tests/clients" / name).is_file()


def test_each_test_of_the_clients_stands_on_the_page() -> None:
    there = {path.name for path in (ROOT / "tests/clients").glob("test_*.py")}
    assert set(TESTS) == there


def test_the_variables_of_the_page_are_those_that_the_tests_set() -> None:
    named = re.findall(r"^\| `(CHECKLY_\w+)` \|", PAGE, re.MULTILINE)
    assert named == [*five_variables("http://127.0.0.1", key="", account_id="")]
