"""The public API's way to write a check, mapped to the contract's. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from contract.checks import SECONDS_PER, CheckType, TimeUnit

CONTROL_PLANE_FIELDS: Final = frozenset(
    {
        "id", "activated", "muted", "doubleCheck", "locations", "privateLocations", "tags",
        "alertSettings", "useGlobalAlertSettings", "groupId", "groupOrder",
        "alertChannelSubscriptions", "retryStrategy", "triggerIncident", "runParallel",
        "description", "frequency", "frequencyOffset", "created_at", "updated_at",
        "alertChannels", "runtimeId",
    }
)  # fmt: skip
"""What a check of the public API holds beyond how to look: no matter to a single run."""

_SNIPPETS: Final = ("setupSnippetId", "tearDownSnippetId")
_RENAMED: Final = {"localSetupScript": "setupScript", "localTearDownScript": "teardownScript"}


@dataclass(frozen=True, slots=True)
class SpecForm:
    """A check as the contract writes it, and where its fields stand in the file."""

    fields: dict[str, object]
    moved: dict[str, str] = field(default_factory=dict)
    """Path in `fields` to path in the file, for what stands elsewhere there."""

    def path_in_file(self, path: str) -> str:
        """Where the reader finds what the contract calls `path`."""
        for here, there in self.moved.items():
            if path == here or path.startswith((f"{here}.", f"{here}[")):
                return there + path.removeprefix(here)
        return path


class FormError(ValueError):
    """A field of the public form is wrong; knows the path and what is wrong there."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path = path


def to_contract(document: Mapping[str, object], kind: CheckType) -> SpecForm:
    """The check's spec fields; fields that only concern the control plane are left out.

    Raises:
        FormError: a field of the public form cannot be mapped.
    """
    fields = {key: value for key, value in document.items() if key not in CONTROL_PLANE_FIELDS}
    moved: dict[str, str] = {}
    for snippet in _SNIPPETS:
        if fields.pop(snippet, None) is not None:
            raise FormError(f"$.{snippet}", "names a snippet; without a service there are none")
    for public, ours in _RENAMED.items():
        if public in fields:
            fields[ours] = fields.pop(public)
            moved[f"$.{ours}"] = f"$.{public}"
    _lift_assertions(fields, moved)
    if kind is CheckType.HEARTBEAT:
        _flatten_heartbeat(fields, moved)
    fields["type"] = kind.value
    return SpecForm(_text_where_text_is_meant(fields), moved)


def _lift_assertions(fields: dict[str, object], moved: dict[str, str]) -> None:
    """The public form keeps assertions in the request."""
    request = fields.get("request")
    if not isinstance(request, dict) or "assertions" not in request:
        return
    if "assertions" in fields:
        raise FormError("$.request.assertions", "stands beside $.assertions; keep one of them")
    fields["request"] = {key: value for key, value in request.items() if key != "assertions"}
    fields["assertions"] = request["assertions"]
    moved["$.assertions"] = "$.request.assertions"


def _flatten_heartbeat(fields: dict[str, object], moved: dict[str, str]) -> None:
    heartbeat = fields.pop("heartbeat", None)
    if isinstance(heartbeat, dict):
        for name in ("period", "grace"):
            fields[f"{name}Seconds"] = _seconds(heartbeat, name)
            moved[f"$.{name}Seconds"] = f"$.heartbeat.{name}"
        rest = {key: heartbeat[key] for key in heartbeat if key not in _HEARTBEAT_TIMES}
        moved.update({f"$.{key}": f"$.heartbeat.{key}" for key in rest})
        fields.update(rest)
    elif heartbeat is not None:
        raise FormError("$.heartbeat", "must hold period, periodUnit, grace and graceUnit")
    for shown in _SHOWN_WITH_HEARTBEATS:
        fields.pop(shown, None)
    if fields.get("pingToken") is None:
        # The service makes one when the check is created; a single run needs none.
        fields["pingToken"] = "none"


_HEARTBEAT_TIMES: Final = frozenset({"period", "periodUnit", "grace", "graceUnit"})
_SHOWN_WITH_HEARTBEATS: Final = ("shouldFail", "pingUrl")
"""What the public API shows with a heartbeat check, and means nothing to a run."""


def _seconds(heartbeat: Mapping[str, object], name: str) -> float:
    unit, amount = heartbeat.get(f"{name}Unit"), heartbeat.get(name)
    if not isinstance(unit, str) or unit not in list(TimeUnit):
        units = ", ".join(TimeUnit)
        raise FormError(f"$.heartbeat.{name}Unit", f"is {unit}; use one of {units}")
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise FormError(f"$.heartbeat.{name}", f"is {amount}; use a number of {unit}")
    return amount * SECONDS_PER[TimeUnit(unit)]


def _text_where_text_is_meant(fields: dict[str, object]) -> dict[str, object]:
    """`target: 200` and `value: 1` mean text, and an empty regex means none."""
    shaped = dict(fields)
    if isinstance(assertions := shaped.get("assertions"), list):
        shaped["assertions"] = [_assertion(each) for each in assertions]
    if isinstance(request := shaped.get("request"), dict):
        pairs = {
            key: [_with_text(each, "value") for each in value]
            for key, value in request.items()
            if key in {"headers", "queryParameters"} and isinstance(value, list)
        }
        shaped["request"] = {**request, **pairs}
    return shaped


def _assertion(assertion: object) -> object:
    if isinstance(assertion, dict) and assertion.get("regex") == "":
        assertion = {**assertion, "regex": None}
    return _with_text(assertion, "target")


def _with_text(entry: object, key: str) -> object:
    if not isinstance(entry, dict) or not isinstance(entry.get(key), (bool, int, float)):
        return entry
    return {**entry, key: as_text(entry[key])}


def as_text(value: object) -> str:
    """A plain scalar as JSON would write it, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
