import tracemalloc
from datetime import UTC, datetime
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.alert_channels.sending.errors import ChannelError
from service.alert_channels.templates.filling import MOST_BYTES, MOST_STEPS, Budget, fill
from service.alert_channels.templates.functions import Surroundings
from service.alert_channels.templates.parser import MOST_LETTERS, TemplateError
from tests.builders.outgoing import outgoing

VALUES: dict[str, Any] = {
    "NAME": 'Check "Orders" has failed',
    "TYPE": "ALERT_FAILURE",
    "TAGS": ["team:shop", "env=prod", "eu"],
    "TIME": 123,
    "NO": False,
    "EMPTY": "",
    "WHO": {"name": "Ann", "city": "Bonn"},
}


def filled(template: str, **values: Any) -> str:
    around = Surroundings(datetime(2026, 11, 21, 8, 15, tzinfo=UTC), Random(1))
    return fill(template, {**VALUES, **values}, around)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("no variable", "no variable"),
        ("{{{NAME}}}", 'Check "Orders" has failed'),
        ("{{&NAME}}", 'Check "Orders" has failed'),
        ("{{NAME}}", "Check%20%22Orders%22%20has%20failed"),
        ("{{ TYPE }}-{{UNKNOWN}}-{{TIME}}", "ALERT_FAILURE--123"),
        (r"\{{NAME}}", "{{NAME}}"),
        ("a {{! left out }}b{{!-- and this --}}", "a b"),
        ("a {{~TYPE~}} b", "aALERT_FAILUREb"),
        ("{{#if NAME}}yes{{else}}no{{/if}}", "yes"),
        ("{{#if EMPTY}}yes{{else}}no{{/if}}", "no"),
        ("{{#if NO}}1{{else if EMPTY}}2{{else if TIME}}3{{else}}4{{/if}}", "3"),
        ("{{#unless NO}}ok{{/unless}}", "ok"),
        ("{{^NO}}ok{{/NO}}", "ok"),
        ("{{#each TAGS}}{{@index}}={{{this}}}{{#unless @last}},{{/unless}}{{/each}}",
         "0=team:shop,1=env=prod,2=eu"),
        ("{{#each TAGS}}{{TIME}} {{/each}}", "123 123 123 "),
        ("{{#each WHO}}{{@key}}:{{this}} {{/each}}", "name:Ann city:Bonn "),
        ("{{#each EMPTY}}x{{else}}none{{/each}}", "none"),
        ("{{#with WHO}}{{name}} {{../TIME}}{{/with}}", "Ann 123"),
        ("{{WHO.city}} {{TAGS.length}} {{TAGS.[2]}} {{lookup TAGS 2}}", "Bonn 3 eu eu"),
        ("{{#TAGS}}{{this}};{{/TAGS}}", "team:shop;env=prod;eu;"),
        ('{{tagValue TAGS "team"}} {{tagValue TAGS "env"}} {{tagValue TAGS "x" "none"}}',
         "shop prod none"),
        ('{{#startsWith TYPE "ALERT_"}}yes{{else}}no{{/startsWith}}', "yes"),
        ('{{replace "a-b-b" "b" "c"}}', "a-c-b"),
        ('{{split "a,b,c" "," 1}} {{split "a,b" "," 7}}', "b "),
        ("{{year}} {{date 'YYYY-MM-DD'}}", "2026 2026-11-21"),
        ("{{moment '2 days ago' 'DD.MM.'}}", "19.11."),
        ('{{#eq TYPE "ALERT_FAILURE"}}down{{else}}up{{/eq}}', "down"),
        ('{{#is TIME "123"}}y{{/is}}{{#isnt TIME 1}}y{{/isnt}}', "yy"),
        ("{{#gt TIME 100}}1{{/gt}}{{#gte TIME 123}}2{{/gte}}", "12"),
        ("{{#lt TIME 9}}3{{/lt}}{{#lte TIME 123}}4{{/lte}}", "4"),
        ('{{#compare TIME ">=" 123}}y{{else}}n{{/compare}}', "y"),
        ("{{#and TIME NAME}}y{{/and}}{{#or NO TIME}}y{{/or}}{{#neither NO EMPTY}}y{{/neither}}",
         "yyy"),
        ("{{#not NO}}y{{/not}}{{#isTruthy NO}}y{{/isTruthy}}{{#isFalsey NO}}z{{/isFalsey}}", "yz"),
        ('{{#contains TAGS "eu"}}y{{/contains}}{{#has NAME "Orders"}}y{{/has}}', "yy"),
        ('{{default EMPTY UNKNOWN "d"}}', "d"),
        ("{{#ifEven 2}}y{{/ifEven}}{{#ifOdd 2}}y{{/ifOdd}}{{#ifNth 3 9}}z{{/ifNth}}", "yz"),
        ("{{#unlessEq TIME 1}}a{{/unlessEq}}{{#unlessGt TIME 1}}b{{/unlessGt}}", "a"),
        ("{{#unlessGteq TIME 200}}c{{/unlessGteq}}{{#unlessLt TIME 1}}d{{/unlessLt}}", "cd"),
        ("{{#unlessLteq TIME 1}}e{{/unlessLteq}}", "e"),
        ('{{#if (and (eq TYPE "ALERT_FAILURE") (gt TIME 100))}}y{{/if}}', "y"),
        ("{{{json NAME}}}", '"Check \\"Orders\\" has failed"'),
        ("{{eq TIME 123}}", "true"),
    ],
)  # fmt: skip
def test_the_documented_subset_is_filled_in(template: str, expected: str) -> None:
    assert filled(template) == expected


def test_chance_is_a_uuid_and_a_number() -> None:
    assert UUID(filled("{{$UUID}}")).version == 4
    assert 0 <= int(filled("{{$RANDOM_NUMBER}}")) <= 10_000


def test_a_variable_wins_over_a_function_of_its_name() -> None:
    assert filled("{{year}}", year="mine") == "mine"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{#if A}}", "has no {{/if}}"),
        ("{{/if}}", "where no {{#if}} is open"),
        ("{{else}}", "has an {{else}} outside a block"),
        ("{{#if A}}{{else}}{{else}}{{/if}}", "a second one"),
        ("{{if (eq A}}", "bracket is not closed"),
        ("{{a b ) c}}", "is no expression"),
        ('{{nothing "x"}}', "calls nothing, which is no function"),
        ("{{#gt NAME 1}}{{/gt}}", "is no number"),
        ('{{compare 1 "~" 2}}', "calls compare, whose operator is none of =="),
        ('{{date "when pigs fly" "YYYY"}}', "calls date, whose date cannot be read"),
        ("{{#if A}}" * 21, "more than 20 deep"),
        ("{{#if", "has a {{ that no }} closes"),
        ("{{NAME}} and {{NAME", "has a {{ that no }} closes"),
        ("{{NA{ME}}", "has a {{ that no }} closes"),
        ("{{" + "x" * MOST_LETTERS, "use at most"),
    ],
)  # fmt: skip
def test_what_cannot_be_filled_in_is_said(template: str, said: str) -> None:
    with pytest.raises(TemplateError) as caught:
        filled(template)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        "{{#each L}}{{#each ../L}}{{#each ../L}}{{this}}{{/each}}{{/each}}{{/each}}",
        "{{{BIG}}}" * 10,
        "{{json BIG}}" * 8_000,
        "{{{" + "json (" * 15 + 'json "' + "\\" * 1_000 + '"' + ")" * 15 + "}}}",
        "{{#if " + "(replace " * 9 + "BIG" + ' "x" BIG)' * 9 + "}}{{/if}}",
        "{{#if (split BIG '')}}{{/if}}",
    ],
)
def test_a_template_that_runs_away_is_stopped(template: str) -> None:
    with pytest.raises(TemplateError, match=r"longer than|steps|parts"):
        filled(template, L=list(range(500)), BIG="x" * (MOST_BYTES // 5))


def test_calls_in_calls_never_build_a_long_text() -> None:
    nested = "{{{" + "json (" * 15 + 'json "' + "\\" * 1_000 + '"' + ")" * 15 + "}}}"
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError):
            filled(nested)
        assert tracemalloc.get_traced_memory()[1] < 8 * MOST_BYTES
    finally:
        tracemalloc.stop()


def test_a_call_that_costs_too_much_is_not_made() -> None:
    budget = Budget()
    budget.spend_steps(MOST_STEPS - 10)
    around = Surroundings(datetime(2026, 11, 21, tzinfo=UTC), Random(1))
    with pytest.raises(TemplateError, match="steps"):
        fill("{{#if (json BIG)}}{{/if}}", {"BIG": "x" * 10_000}, around, budget=budget)


def test_all_fields_of_a_notification_share_one_budget() -> None:
    one = outgoing("WEBHOOK", variables={"BIG": "x" * (MOST_BYTES // 3)})
    for _ in range(3):
        one.fill("{{BIG}}", "config.headers[0].value", encodes=False)
    with pytest.raises(ChannelError, match="longer than"):
        one.fill("{{BIG}}", "config.headers[3].value", encodes=False)


@pytest.mark.parametrize(
    "template",
    [
        "{{#gt SECRET 1}}{{/gt}}",
        "{{ifOdd SECRET}}",
        "{{ifOdd FRACTION}}",
        "{{compare 1 SECRET 2}}",
        '{{date SECRET "YYYY"}}',
        '{{split "a" "," SECRET}}',
    ],
)
def test_an_error_names_the_function_and_no_value(template: str) -> None:
    with pytest.raises(TemplateError, match=r"^calls \w+, whose ") as caught:
        filled(template, SECRET="hunter2", FRACTION=7.25)
    assert "hunter2" not in str(caught.value)
    assert "7.25" not in str(caught.value)


def test_a_place_of_many_digits_is_none() -> None:
    assert filled("{{lookup TAGS PLACE}}|", PLACE="9" * 5_000) == "|"


@given(st.text(alphabet="{}#/^&~!() ab.\"'@_-[]12else", max_size=200))
def test_any_text_is_filled_in_or_refused(template: str) -> None:
    try:
        filled(template, a=1, b=[1, 2])
    except TemplateError as problem:
        assert str(problem)  # noqa: PT017 - either way is right
