import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from contract.assertions import Assertion, Source
from runners.judging import jsonpath
from runners.judging.assertions import evaluate
from runners.judging.jsonpath import BadPathError, find_in_text, find_values
from runners.runner import JsonText

SUITE = json.loads((Path(__file__).parents[1] / "data" / "jsonpath-cts.json").read_text())["tests"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in SUITE])
def test_paths_are_read_as_the_compliance_suite_of_rfc_9535_says(case: dict[str, Any]) -> None:
    if case.get("invalid_selector"):
        with pytest.raises(BadPathError):
            find_values(case["selector"], case.get("document", {}))
        return
    found = json.dumps(list(find_values(case["selector"], case["document"])), sort_keys=True)
    wanted = case.get("results", [case.get("result")])
    assert found in [json.dumps(result, sort_keys=True) for result in wanted]


@pytest.mark.parametrize(
    ("path", "document", "lengths"),
    [
        ("$.length", [1, 2, 3], [3]),
        ("$.items.length", {"items": [1, 2]}, [2]),
        ("$.name.length", {"name": "four"}, [4]),
        ("$.box.length", {"box": {"length": 12}}, [12]),
        ("$.box.length", {"box": {}}, []),
        ("$.number.length", {"number": 12}, []),
        ("$.missing.length", {}, []),
        ("$[*].length", [[1], "ab", {"length": 7}, None], [1, 2, 7]),
        ("$..length", {"a": {"length": 5}}, [5]),
        ("$['length']", {"length": 6}, [6]),
    ],
)
def test_length_at_the_end_counts_arrays_and_texts(
    path: str, document: Any, lengths: list[int]
) -> None:
    assert list(find_values(path, document)) == lengths


@pytest.mark.parametrize("path", ["", "a.b", "@.a", "$.", "$[", "$.a.", "$.a[?foo(@.b)]", " $.a"])
def test_a_path_that_is_none_is_told(path: str) -> None:
    with pytest.raises(BadPathError):
        find_values(path, {})


def test_a_path_nested_without_end_is_told() -> None:
    with pytest.raises(BadPathError):
        find_values("$[?" + "(" * 5000 + "@.a" + ")" * 5000 + "]", [])


def test_a_document_deeper_than_the_engine_looks_is_told() -> None:
    document: Any = []
    for _ in range(200):
        document = [document]
    with pytest.raises(BadPathError):
        find_values("$..a", document)


def test_arrays_nested_deeper_than_python_compares_are_told() -> None:
    document: Any = [1]
    for _ in range(900):
        document = [document]
    with pytest.raises(BadPathError, match="nested too deeply"):
        find_values("$[?@.a == @.b]", [{"a": document, "b": document}])


def test_what_is_found_is_the_document_s_own() -> None:
    document = {"a": [{"b": 1}], "c": {"d": []}}
    [array, inner] = find_values("$[*]", document)
    assert array is document["a"]
    assert inner is document["c"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$[?@ == $[0]]", [{"a": [1, {"b": "x"}]}, {"a": [1, {"b": "x"}]}]),
        ("$[?@ != $[0]]", [{"a": [1, {"b": "y"}]}, {"a": [1]}, [1], {}]),
        ("$[?@.a == $[3].a]", [{"a": [1]}]),
    ],
)
def test_objects_and_arrays_are_compared_by_all_that_they_hold(path: str, found: Any) -> None:
    same: Any = {"a": [1, {"b": "x"}]}
    document = [same, {"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}, {"a": [1]}, [1], {}]
    assert list(find_values(path, document)) == found


def test_a_pattern_in_a_filter_cannot_run_away() -> None:
    document = [{"a": "a" * 50_000 + "!"}]
    assert list(find_values("$[?match(@.a, '(a*)*(a*)*b')]", document)) == []


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "a{5000}"])
def test_a_pattern_in_a_filter_that_is_none_matches_nothing(pattern: str) -> None:
    assert list(find_values(f"$[?search(@, '{pattern}')]", ["a"])) == []


def test_a_pattern_on_what_is_no_text_matches_nothing() -> None:
    assert list(find_values("$[?search(@, 'a')]", [1, "a"])) == ["a"]


@pytest.mark.parametrize("path", ["$..[?count($..c)>1]", "$[?count($[?1==2])==0]", "$..[?$..c]"])
def test_a_path_that_would_take_for_ever_gives_up(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonpath, "MAX_STEPS", 10_000)
    document = [{"a": {"b": [1, 2, {"c": 3}]}}] * 200
    assert len(find_values("$..c", document)) == 200
    with pytest.raises(BadPathError, match="more than 10000 places"):
        find_values(path, document)


@pytest.mark.parametrize(
    "path",
    ["$.n[?$.big == $.same]", "$.n[?$.text == $.other]", "$.n[?search($.text, 'y')]"],
    ids=["arrays", "texts", "patterns"],
)
def test_comparing_and_searching_what_is_large_counts_too(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {
        "n": [1] * 200,
        "big": [1] * 1000,
        "same": [1] * 1000,
        "text": "x" * 100_000,
        "other": "x" * 99_999 + "y",
    }
    monkeypatch.setattr(jsonpath, "MAX_STEPS", 20_000)
    assert find_values("$.n[?$.n]", document) == [1] * 200
    with pytest.raises(BadPathError, match="more than 20000 places"):
        find_values(path, document)


@pytest.mark.timeout(60)
def test_a_body_of_25_mb_is_searched_as_a_whole() -> None:
    item = {"name": "somebody", "tags": ["a", "b", "c"], "owner": {"id": 7, "note": "x" * 140}}
    document = [dict(item) for _ in range(100_000)]
    assert len(find_values("$..name", document)) == 100_000


_NAMES = st.sampled_from(["a", "b", "length", "ä"])
_DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3) | st.just(1e300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=10,
)
_STEPS = st.sampled_from(
    [".a", ".b", "['a']", '["ä"]', "[0]", "[1]", "[-1]", "[*]", "..a", ".length", "[?@.a]", "[0:2]"]
)


@given(_DOCUMENTS, st.lists(_STEPS, max_size=4))
def test_a_path_leads_to_the_same_in_text_and_in_the_document(
    document: Any, steps: list[str]
) -> None:
    path = "$" + "".join(steps)
    text = json.dumps(document)
    expected = find_values(path, document)
    assert list(find_in_text(path, text)) == list(expected)
    assert list(find_in_text(path, text.encode())) == list(expected)


_PAGE = Path(__file__).parents[3] / "docs" / "checks.md"
_OR = [line.removeprefix("- ") for line in _PAGE.read_text().splitlines() if "||" in line]
_GOOD = {
    "status": "standby",
    "error": None,
    "nodes": [{"state": "up"}, {"state": "standby"}],
    "offers": [{"region": "us-1", "price": 9, "id": 1}, {"region": "eu-2", "price": 9, "id": 2}],
}
_BAD = {
    "status": None,
    "nodes": [{"state": "up"}, {"name": "without a state"}],
    "offers": [{"region": "us-1", "price": 9, "id": 1}],
}


@pytest.mark.parametrize("line", [line for line in _OR if line.startswith("{")])
def test_the_page_on_checks_shows_how_a_filter_says_or(line: str) -> None:
    assertion = msgspec.convert(yaml.safe_load(line), Assertion)
    for document, holds in ((_GOOD, True), (_BAD, False)):
        (result,) = evaluate([assertion], {Source.JSON_BODY: JsonText(json.dumps(document))})
        assert (result.error is None) == holds
