"""Documents become the resources of a deployment; names become references."""

from pathlib import Path
from typing import Any

import pytest

from picket.code.reading.documents import read_project
from picket.code.reading.env_values import EnvValues
from picket.code.reading.linking import Linked, link
from picket.errors import CommandError
from tests.builders.code_projects import CHECK, OTHERS, write_project

PLACES = {"default": "l-1"}
ENVIRON = {"SHOP_TOKEN": "correct-horse"}


def linked(root: Path) -> Linked:
    return link(EnvValues(ENVIRON).fill(read_project((root,))), PLACES)


def payload(found: Linked, kind: str, logical_id: str) -> Any:
    (one,) = [one for one in found.resources if one.key == (kind, logical_id)]
    return one.payload


def refusal(root: Path) -> list[str]:
    with pytest.raises(CommandError) as refused:
        linked(root)
    return refused.value.message.splitlines()


def test_a_check_is_sent_as_the_api_takes_it(tmp_path: Path) -> None:
    found = linked(write_project(tmp_path))
    assert payload(found, "check", "home") == {
        "checkType": "URL",
        "name": "Home",
        "groupId": {"ref": "shop"},
        "frequency": 5,
        "triggerIncident": {
            "serviceId": {"ref": "others#checkout"},
            "severity": "MAJOR",
            "name": "Down",
            "description": "It is.",
            "notifySubscribers": False,
        },
        "request": {
            "url": "http://127.0.0.1:9/",
            "assertions": [{"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}],
        },
    }


def test_files_of_scripts_are_sent_once_and_named_by_their_numbers(tmp_path: Path) -> None:
    root = write_project(tmp_path)
    (root / "again.yaml").write_text((root / "order.yaml").read_text())
    found = linked(root)
    assert found.shared_files == [
        {"path": "lib/shop.ts", "content": "export const shop = 'shop';\n"}
    ]
    order = payload(found, "check", "order")
    assert order["dependencies"] == payload(found, "check", "again")["dependencies"] == [0]
    assert order["scriptPath"] == "order.spec.ts"
    assert order["environmentVariables"] == [{"key": "TOKEN", "value": "correct-horse"}]


def test_a_group_is_sent_in_the_second_form(tmp_path: Path) -> None:
    assert payload(linked(write_project(tmp_path)), "check-group", "shop") == {
        "name": "Shop",
        "tags": ["shop"],
        "environmentVariables": [
            {"key": "TENANT", "value": "north"},
            {"key": "NUMBER", "value": "7"},
        ],
        "localSetupScript": "// before\n",
        "v": 2,
    }


def test_who_says_that_a_channel_hears_of_a_check_does_not_matter(tmp_path: Path) -> None:
    found = linked(write_project(tmp_path))
    subscriptions = [one for one in found.resources if one.type == "alert-channel-subscription"]
    assert [one.payload for one in subscriptions] == [
        {"alertChannelId": {"ref": "ops-mail"}, "checkId": {"ref": "home"}, "activated": True},
        {"alertChannelId": {"ref": "ops-mail"}, "groupId": {"ref": "shop"}, "activated": True},
    ]
    assert payload(found, "alert-channel", "ops-mail") == {
        "type": "EMAIL",
        "config": {"address": "ops@example.com"},
        "autoSubscribe": False,
    }


def test_locations_are_those_of_the_files_and_those_of_the_service(tmp_path: Path) -> None:
    found = linked(write_project(tmp_path))
    places = {one.logical_id: one for one in found.resources if one.type == "private-location"}
    assert places["others#cellar"].payload == {"name": "Cellar", "slugName": "cellar"}
    assert places["location-default"].to_wire() == {
        "type": "private-location",
        "logicalId": "location-default",
        "member": False,
        "physicalId": "l-1",
        "payload": None,
    }
    own = [
        one.payload for one in found.resources if one.type == "private-location-check-assignment"
    ]
    assert {"privateLocationId": {"ref": "others#cellar"}, "checkId": {"ref": "home"}} in own
    assert {"privateLocationId": {"ref": "location-default"}, "checkId": {"ref": "home"}} in own


def test_services_stand_on_cards_by_reference(tmp_path: Path) -> None:
    found = linked(write_project(tmp_path))
    assert payload(found, "status-page", "others#shop-status")["cards"] == [
        {"name": "Shop", "services": [{"ref": "others#checkout"}]}
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("group: shop", "group: shopp", "home.yaml: $.group is shopp; did you mean Shop?"),
        ("[ops-mail]", "[x]", "home.yaml: $.channels is x; no alert-channel in the files has"),
        ("[ops-mail]", "[1]", "home.yaml: $.channels[0] is 1; use a name"),
        ("cellar, default", "defualt", "home.yaml: $.privateLocations has defualt; did you mean d"),
        ("frequency: 5", "frequncy: 5", "home.yaml: $.frequncy"),
        ("url: http", "url: htp", "home.yaml: $.request.url"),
        ("service: Checkout", "service: Basket", "home.yaml: $.triggerIncident.service is Basket"),
    ],
)
def test_what_is_wrong_in_a_check_is_said_by_file_and_field(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in CHECK
    lines = refusal(write_project(tmp_path, home=CHECK.replace(old, new)))
    assert [one for one in lines if one.startswith(said)], lines


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tags:", "tgas:", "others.yaml:2: $.tgas is unknown; did you mean tags?"),
        ("slugName: cellar", "icon: x", "others.yaml:18: $.slugName is missing"),
        ("checks: [Home]", "checks: [Hom]", "others.yaml:10: $.checks is Hom; did you mean Home?"),
        ("services: [Checkout]", "services: x", "others.yaml:25: $.cards[0].services is x; use a"),
        ("setup.js", "gone.js", "others.yaml:2: $.setupScriptFile is gone.js, which cannot be"),
    ],
)
def test_what_is_wrong_in_another_document_is_said_by_line_and_field(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in OTHERS
    lines = refusal(write_project(tmp_path, others=OTHERS.replace(old, new)))
    assert [one for one in lines if one.startswith(said)], lines


def test_what_only_a_single_run_knows_is_noted(tmp_path: Path) -> None:
    root = write_project(tmp_path, home=f"{CHECK}proxyUrl: http://proxy.test\n")
    assert linked(root).notes == [
        "home.yaml: $.proxyUrl is for `picket run` alone; the service has it for each location"
    ]
