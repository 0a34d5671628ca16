"""What a check file may say is told in the words of a check file."""

import pytest

from contract.checks import CheckType
from picket.check_file.load import allowed_fields, parse
from picket.errors import CommandError
from runners.registry import RUNNABLE


def refused(text: str) -> str:
    with pytest.raises(CommandError) as caught:
        parse(text, "check.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        ("API", "setupScriptFiel", "setupScriptFile"),
        ("API", "setupFile", "setupScriptFile"),
        ("API", "tearDownScriptFile", "teardownScriptFile"),
        ("BROWSER", "scriptFil", "scriptFile"),
        ("BROWSER", "dependencyfile", "dependencyFiles"),
        ("PLAYWRIGHT", "suitefolder", "suiteFolder"),
        ("PLAYWRIGHT", "bundle", None),
        ("URL", "varables", "variables"),
        ("HEARTBEAT", "hartbeat", "heartbeat"),
        ("DNS", "frequenzy", "frequency"),
    ],
)
def test_what_may_have_been_meant_is_a_word_of_the_file(
    kind: str, written: str, meant: str | None
) -> None:
    said = refused(f"type: {kind}\n{written}: x\n")
    assert f"$.{written} is not a field here; " in said
    if meant is not None:
        assert f"did you mean {meant}?" in said


@pytest.mark.parametrize("kind", sorted(RUNNABLE))
def test_the_list_of_fields_has_what_a_file_may_say_and_nothing_of_ours(kind: CheckType) -> None:
    said = refused(f"type: {kind}\nzzzz: 1\n")
    assert (
        f"$.zzzz is not a field here; use {', '.join(sorted(allowed_fields(kind).known))}" in said
    )
    ours = {"bundleSha256", "snippets", "groupSetupScript", "groupTeardownScript", "refreshCache"}
    assert ours.isdisjoint(allowed_fields(kind).known)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (CheckType.API, "setupScriptFile"),
        (CheckType.API, "proxyUrl"),
        (CheckType.BROWSER, "scriptFile"),
        (CheckType.MULTI_STEP, "dependencyFiles"),
        (CheckType.PLAYWRIGHT, "suiteFolder"),
        (CheckType.HEARTBEAT, "heartbeat"),
        (CheckType.TCP, "variables"),
    ],
)
def test_a_types_own_words_are_among_them(kind: CheckType, word: str) -> None:
    assert word in allowed_fields(kind).known


def test_a_mistyped_part_of_a_variable_is_told_and_not_passed_over() -> None:
    said = refused(
        "type: URL\nrequest: {url: 'http://a/'}\nvariables: [{key: A, value: b, secrett: true}]\n"
    )
    assert "$.variables[0].secrett is not a field here; did you mean secret?" in said
