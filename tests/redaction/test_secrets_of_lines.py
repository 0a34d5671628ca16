"""A secret of several lines is hidden line by line, its values too, and wherever it is broken."""

import json

import pytest

from contract.result import LogLine
from redaction.policy import HIDDEN, select_usable
from redaction.result import Scrubber
from redaction.scanner.scan import scan_bytes
from tests.builders.observations import a_result, an_outcome
from tests.builders.told_results import cleaned_body

CODES = "ab1\ncd2\nef3"
"""Recovery codes, each too short to be secret by itself."""
SHOWN = {
    "aria snapshot": "- text: ab1 cd2 ef3",
    "field of one line": "ab1cd2ef3",
    "difference": "- ab1\n- cd2\n- ef3",
    "coloured difference": "\x1b[32m- ab1\x1b[39m\n\x1b[32m- cd2\x1b[39m\n\x1b[32m- ef3\x1b[39m",
    "list of a difference": '-   "ab1",\n-   "cd2",\n+   "ef3",',
    "object that Node prints": "{ a: 'ab1\\n' +\n    'cd2\\n' +\n    'ef3' }",
    "JSON of JSON": json.dumps(json.dumps({"a": ["ab1", "cd2", "ef3"]}, indent=2)),
    "form": "a=ab1%0D%0Acd2%0D%0Aef3",
    "HTML": "ab1&#10;cd2&#xA;ef3",
}


@pytest.mark.parametrize("shown", SHOWN)
def test_short_lines_are_hidden_together_whatever_is_between_them(shown: str) -> None:
    assert "cd2" not in cleaned_body(CODES, f"a {SHOWN[shown]} b")


@pytest.mark.parametrize("shown", SHOWN)
def test_the_scanner_finds_short_lines_whatever_is_between_them(shown: str) -> None:
    assert scan_bytes(f"a {SHOWN[shown]} b".encode(), [CODES])


def test_other_words_between_lines_make_them_no_secret() -> None:
    text = "ab1 or cd2 or ef3"
    assert cleaned_body(CODES, text) == text
    assert not scan_bytes(text.encode(), [CODES])


def test_lines_that_were_printed_apart_are_hidden_together() -> None:
    printed = ("a", "-ab1", "cd2", "ef3-", "b")
    log = tuple(LogLine(after_ms=1, level="INFO", message=text) for text in printed)
    cleaned = Scrubber([CODES]).clean(a_result(an_outcome(log=log)))
    said = [line.message for line in cleaned.result.outcome.log]
    assert said == ["a", f"-{HIDDEN}", HIDDEN, f"{HIDDEN}-", "b"]
    assert cleaned.replacements == 3


def test_each_line_of_four_characters_that_identifies_the_secret_is_secret() -> None:
    secret = "7f3a\ntrue,\n  - 'k9x2' \nabc\npassword:\n-----BEGIN KEY-----"
    assert set(select_usable([secret])) == {secret, "7f3a", "k9x2"}


def test_short_lines_of_a_secret_of_many_lines_are_not_secret_alone() -> None:
    secret = "\n".join(f"{number:04}" for number in range(300)) + "\nsixteen-or-more-c"
    assert select_usable([secret]) == (secret, "sixteen-or-more-c")


def test_values_in_json_are_secret_from_eight_characters_on_with_their_lines() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG\n-----END KEY-----"
    account = {"id": 1234567890, "short": "1234567", "at": "https://a.example/", "key": key}
    found = set(select_usable([json.dumps(account)]))
    assert found == {json.dumps(account), "1234567890", key, "MIIEvQIBADANBgkq", "hkiG"}


def test_values_of_assignments_are_secret_without_quotes_and_comments() -> None:
    secret = (
        "export A=hunter-two # b\nB=\"l1-of-it\\nl2-of-it\"\nc: 'x#y z w v'\nD=12\n"
        "URL=postgres://joe:pw-4@db.example/"
    )
    found = set(select_usable([secret]))
    assert {"hunter-two", "l1-of-it\nl2-of-it", "l1-of-it", "x#y z w v", "pw-4"} <= found


def test_parts_of_parts_are_the_parts_themselves() -> None:
    inner = json.dumps({"key": "k1-of-it-all\nk2-of-it-all"})
    secret = f"A={inner}\nB=2"
    found = select_usable([secret])
    assert "k2-of-it-all" in found
    assert select_usable(found) == found
