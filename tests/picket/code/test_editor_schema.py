"""What `picket schema` prints says what `picket run` and `picket apply` take."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from contract.checks import AGENT_TYPES, CheckType
from picket.__main__ import main
from picket.check_file.load import allowed_fields, read_documents
from picket.code.editor_schema import editor_schema
from picket.code.reading.documents import Kind
from picket.code.reading.other_bodies import api_fields_of, fields_of
from picket.up.demo_target import DemoPorts
from picket.up.starter_checks import starter_checks
from service.alert_channels.kinds.registry import KINDS
from service.groups.schemas import GroupV2Write
from service.locations.model import LocationWrite
from service.maintenance.model import WindowWrite
from service.status_pages.model import ServiceWrite
from service.status_pages.schemas import StatusPageWrite

ROOT = Path(__file__).parents[3]
SCHEMA = editor_schema()
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)
PORTS = DemoPorts(http=8001, https=8002, echo=8003, dns=8004)
STARTERS = starter_checks(PORTS, location="default")
MODELS = {
    Kind.GROUP: GroupV2Write,
    Kind.PRIVATE_LOCATION: LocationWrite,
    Kind.MAINTENANCE_WINDOW: WindowWrite,
    Kind.STATUS_PAGE: StatusPageWrite,
    Kind.STATUS_PAGE_SERVICE: ServiceWrite,
}


def examples() -> list[Any]:
    """Each document of the pages on checks and on checks as code."""
    found = []
    for page in ("checks.md", "scripts.md", "checks-as-code.md"):
        for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL):
            for line, document in read_documents(text):
                if isinstance(document, dict) and document.keys() & {"type", "kind"}:
                    found.append(pytest.param(document, id=f"{page}-{line}-{document.get('name')}"))
    return found


def problems(document: Any) -> list[str]:
    """What the schema says is wrong."""
    return [
        f"{'.'.join(str(step) for step in one.instance_path)}: {one.message}"
        for one in VALIDATOR.iter_errors(document)
    ]


@pytest.mark.parametrize("document", examples())
def test_every_example_of_the_documentation_is_right(document: Any) -> None:
    assert problems(document) == []


@pytest.mark.parametrize("check", STARTERS, ids=lambda one: one.name)
def test_every_starter_check_is_right(check: Any) -> None:
    assert problems({"type": check.kind.value, **check.body}) == []


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"type": "URLS", "name": "a"}, "type"),
        ({"type": "URL", "name": "a", "reqest": {"url": "b"}}, ""),
        ({"type": "URL", "name": "a", "request": {"url": "b", "headrs": []}}, "request"),
        ({"type": "API", "name": "a", "request": {"url": "b"}, "frequency": 7}, "frequency"),
        ({"type": "BROWSER", "name": "a"}, ""),
        ({"kind": "groups", "name": "a"}, "kind"),
        ({"kind": "alert-channel", "type": "EMAIL", "config": {"adress": "a"}}, "config"),
        ({"kind": "alert-channel", "type": "PIGEON", "config": {}}, "type"),
        ({"kind": "status-page", "name": "a", "url": "b", "cards": [{"services": []}]}, "cards.0"),
        ({"name": "a"}, ""),
    ],
)
def test_a_wrong_document_is_told_where(wrong: Any, where: str) -> None:
    assert where in {one.partition(":")[0] for one in problems(wrong)}


@pytest.mark.parametrize("kind", sorted(AGENT_TYPES))
def test_the_schema_knows_each_field_that_a_check_file_may_have(kind: CheckType) -> None:
    known = SCHEMA["$defs"][f"check-{kind.value}"]["properties"].keys()
    assert allowed_fields(kind).known <= known


@pytest.mark.parametrize("kind", MODELS)
def test_documents_have_the_fields_of_the_api(kind: Kind) -> None:
    names = {info.alias or name for name, info in MODELS[kind].model_fields.items()}
    assert api_fields_of(kind) == names


def test_documents_of_channels_have_the_fields_of_the_api() -> None:
    names = {
        info.alias or name
        for one in KINDS.values()
        for name, info in one.write.model_fields.items()
    }
    assert api_fields_of(Kind.ALERT_CHANNEL) == names - {"subscriptions"}


@pytest.mark.parametrize("kind", [one for one in Kind if one is not Kind.CHECK])
def test_the_schema_knows_each_field_of_other_documents(kind: Kind) -> None:
    own = [name for name in SCHEMA["$defs"] if name == kind or name.startswith(f"{kind}-")]
    own = [name for name in own if kind is not Kind.STATUS_PAGE or name == kind]
    for name in own:
        assert fields_of(kind) <= SCHEMA["$defs"][name]["properties"].keys()
    assert own


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA
