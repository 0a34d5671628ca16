"""Values of the environment stand where documents have `${NAME}`, and are never printed."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from picket.code.reading.documents import Document, Kind, Project
from picket.code.reading.env_values import EnvValues, escape
from picket.errors import CommandError


def a_project(**fields: Any) -> Project:
    document = Document(
        kind=Kind.CHECK,
        logical_id="a",
        name="A",
        fields=fields,
        source="a.yaml",
        folder=Path(),
    )
    return Project(logical_id="p", name="P", documents=(document,), is_whole=True)


def fill(values: EnvValues, **fields: Any) -> Any:
    return values.fill(a_project(**fields)).documents[0].fields


def test_references_are_filled_in_where_secrets_may_stand() -> None:
    values = EnvValues({"TOKEN": "hunter2"})
    filled = fill(
        values,
        variables={"A": "${TOKEN}", "B": "$${TOKEN}"},
        request={"headers": [{"key": "x", "value": "Bearer ${TOKEN}"}], "body": "${TOKEN}"},
        script="console.log(`${TOKEN}`)",
        testCommand="echo ${TOKEN}",
    )
    assert filled == {
        "variables": {"A": "hunter2", "B": "${TOKEN}"},
        "request": {"headers": [{"key": "x", "value": "Bearer hunter2"}], "body": "${TOKEN}"},
        "script": "console.log(`${TOKEN}`)",
        "testCommand": "echo ${TOKEN}",
    }
    assert values.hide("the token hunter2 is wrong") == "the token ********* is wrong"


def test_names_that_are_not_set_are_refused_with_their_files() -> None:
    with pytest.raises(CommandError) as refused:
        fill(EnvValues({}), config={"url": "${HOOK}", "apiKey": "${KEY}"})
    assert refused.value.message.splitlines() == [
        "a.yaml: HOOK is not set",
        "a.yaml: KEY is not set",
        "set it in the environment",
    ]


def test_secrets_that_are_not_set_can_stay_as_they_are() -> None:
    secret = {"key": "A", "value": "${A}", "secret": True}
    locked = {"key": "B", "value": "${B}", "locked": True}
    filled = fill(EnvValues({}, keep_missing=True), variables=[secret, locked])
    assert [one["value"] for one in filled["variables"]] == ["", "*********"]


def test_credentials_that_are_not_set_stay_within_their_address() -> None:
    values = EnvValues({}, keep_missing=True)
    assert fill(values, proxyUrl="http://${BOTH}@proxy.test:1") == {
        "proxyUrl": "http://*********@proxy.test:1"
    }
    assert fill(values, proxyUrl="http://${HOST}/a") == {"proxyUrl": "*********"}


@given(st.text(alphabet="${}Aa_ "))
def test_an_escaped_text_stays_as_it_was(text: str) -> None:
    assert fill(EnvValues({"A": "x", "a": "x", "_": "x"}), variables={"K": escape(text)}) == {
        "variables": {"K": text}
    }
