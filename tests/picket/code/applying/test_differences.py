"""What changes is said field by field, and no secret is."""

from typing import Any

import pytest

from picket.code.applying.differences import find_changes, show_reset


def lines(wanted: dict[str, Any], stored: dict[str, Any], **names: str) -> list[str]:
    return [
        f"{change.path}: {' | '.join(change.lines)}"
        for change in find_changes(
            wanted, stored, {key.strip("_"): one for key, one in names.items()}
        )
    ]


@pytest.mark.parametrize(
    ("wanted", "stored", "said"),
    [
        ({"frequency": 5}, {"frequency": 10}, "frequency: 10 → 5"),
        ({"activated": True}, {"activated": 1}, "activated: 1 → true"),
        ({"name": "a"}, {}, 'name: none → "a"'),
        ({"request": {"url": "b"}}, {"request": {"url": "a"}}, 'request.url: "a" → "b"'),
        ({"tags": ["a"]}, {"tags": ["a", "b"]}, 'tags: ["a", "b"] → ["a"]'),
        ({"list": [{"a": 1}]}, {"list": [{"a": 2, "b": 3}]}, "list[0].a: 2 → 1"),
        ({"groupId": {"ref": "shop"}}, {"groupId": None}, "groupId: none → shop"),
        ({"groupId": {"ref": "shop"}}, {"groupId": 2}, "groupId: bank → shop"),
        ({"groupId": {"ref": "shop"}}, {"groupId": 3}, "groupId: 3 → shop"),
        ({"url": "http://u:hunter2@a"}, {"url": "b"}, 'url: "b" → "http://***@a"'),
        ({"script": "a\nb\n"}, {"script": "a\nc\n"}, "script: @@ -1,2 +1,2 @@ |  a | -c | +b"),
    ],
)
def test_a_change_is_one_line(wanted: Any, stored: Any, said: str) -> None:
    assert lines(wanted, stored, _1="shop", _2="bank") == [said]


@pytest.mark.parametrize(
    ("wanted", "stored"),
    [
        ({"a": None}, {"a": []}),
        ({"a": ""}, {}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}),
        ({"groupId": {"ref": "shop"}}, {"groupId": 1}),
        ({"services": [{"ref": "shop"}]}, {"services": [{"id": "1", "name": "Shop"}]}),
        ({"password": "*********"}, {"password": "x"}),
        ({"value": "x"}, {"value": "*********"}),
        ({"url": "http://*********@a/b"}, {"url": "http://u:p@a/b"}),
        ({"key": "K", "value": "x", "secret": True}, {"key": "K", "value": "", "secret": True}),
    ],
)
def test_what_is_the_same_is_no_change(wanted: Any, stored: Any) -> None:
    assert lines(wanted, stored, _1="shop") == []


@pytest.mark.parametrize(
    "field",
    [
        {"environmentVariables": [{"key": "K", "value": "hunter2"}]},
        {"request": {"basicAuth": {"username": "u", "password": "hunter2"}}},
        {"request": {"headers": [{"key": "k", "value": "hunter2"}]}},
        {"request": {"body": "hunter2"}},
        {"config": {"url": "hunter2"}},
        {"config": {"webhookSecret": "hunter2"}},
        {"proxyUrl": "hunter2"},
        {"heartbeat": {"pingToken": "hunter2"}},
    ],
)
def test_a_value_that_may_be_secret_is_never_shown(field: dict[str, Any]) -> None:
    (name,) = field
    for old, new in ((field, {}), ({}, field)):
        said = lines(new, old) or [str(show_reset(name, old.get(name)))]
        assert "hunter2" not in str(said)
        assert "changed (not shown)" in str(said)


def test_long_texts_are_cut() -> None:
    old, new = ("\n".join(f"{word} {n}" for n in range(100)) for word in ("a", "b"))
    (change,) = find_changes({"script": new}, {"script": old}, {})
    assert change.lines[-1] == "… 171 more lines"
    (said,) = lines({"name": "x" * 500}, {"name": "y"})
    assert len(said) < 150
