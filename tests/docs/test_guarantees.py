"""Each guarantee names tests that are there, and a mechanism that is there to be taken out."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.removals import (
    REMOVALS,
    ROOT,
    Removal,
    RemovalError,
    Replace,
    ReplaceText,
    Skip,
)

PAGE = (ROOT / "docs/guarantees.md").read_text()
PROMISES = re.split(r"^(?=\*\*)", PAGE, flags=re.MULTILINE)[1:]
NAMED = re.findall(r"^`(tests/\S+?)::(\w+)`$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_named_test_is_there(path: str, name: str) -> None:
    text = Path(ROOT / path).read_text()
    assert re.search(rf"^(async )?def {name}\(|^{name} = ", text, re.MULTILINE)


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_is_one_sentence_whose_mechanism_was_taken_out(promise: str) -> None:
    sentence = promise.splitlines()[0]
    assert re.fullmatch(r"\*\*[A-Z][^.]*\.\*\*", sentence), sentence
    tests = set(re.findall(r"^`(tests/\S+)`$", promise, re.MULTILINE))
    assert tests & {removal.test for removal in REMOVALS}, sentence


@pytest.mark.parametrize("removal", REMOVALS, ids=lambda removal: removal.test)
def test_a_mechanism_stands_once_in_the_function_that_its_removal_names(removal: Removal) -> None:
    source = (ROOT / removal.path).read_text()
    mutated = removal.apply(source)
    assert mutated != source
    ast.parse(mutated)


@pytest.mark.parametrize(
    "name", ["service.jobs.actions.finnish", "service.jobs.no_module.finish", "service.gone"]
)
def test_a_removal_whose_function_is_not_there_is_refused(name: str) -> None:
    removal = Removal(name, Skip("queue.remove"), "")
    with pytest.raises(RemovalError):
        removal.apply((ROOT / removal.path).read_text())


@pytest.mark.parametrize(
    "mutation",
    [
        Skip("queue.vanish"),
        Replace("no + such", "True"),
        ReplaceText("no such text", ""),
        ReplaceText("n", ""),
    ],
)
def test_a_removal_whose_mechanism_is_not_there_once_is_refused(
    mutation: Skip | Replace | ReplaceText,
) -> None:
    removal = Removal("service.jobs.actions.finish", mutation, "")
    with pytest.raises(RemovalError):
        removal.apply((ROOT / removal.path).read_text())


def test_nothing_is_taken_out_that_nobody_promised() -> None:
    assert {removal.test for removal in REMOVALS} <= set(_named_whole())


def _named_whole() -> Iterator[str]:
    for path, name in NAMED:
        yield f"{path}::{name}"
