"""The public API's way to write a check, mapped to the contract's. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from contract.assertion_rules import Wrong
from contract.checks import SCRIPT_TYPES, SECONDS_PER, CheckType, TimeUnit
from contract.runtimes import RUNTIMES, runtime_problem
from picket.check_file.validate import render

CONTROL_PLANE_FIELDS: Final = frozenset(
    {
        "id", "activated", "muted", "doubleCheck", "locations", "privateLocations", "tags",
        "alertSettings", "useGlobalAlertSettings", "groupId", "groupOrder",
        "alertChannelSubscriptions", "retryStrategy", "triggerIncident", "runParallel",
        "description", "frequency", "frequencyOffset", "created_at", "updated_at",
        "alertChannels", "group", "channels", "physicalId", "snapshots",
    }
)  # fmt: skip
"""What a check of the public API holds beyond how to look: no matter to a single run."""

_PHASES: Final = ("setupScript", "teardownScript")
_SNIPPETS: Final = ("setupSnippetId", "tearDownSnippetId")
_NO_SNIPPETS: Final = "refers to a snippet of a service; `picket run` has no service"
_RENAMED: Final = {"localSetupScript": "setupScript", "localTearDownScript": "teardownScript"}


@dataclass(frozen=True, slots=True)
class SpecForm:
    """A check as the contract writes it, and where its fields stand in the file."""

    fields: dict[str, object]
    moved: dict[str, str] = field(default_factory=dict)
    """Path in `fields` to path in the file, for what stands elsewhere there."""
    wrong: list[Wrong] = field(default_factory=list)
    """What could not be mapped, by its path in the file; in its place stands what is right."""

    def path_in_file(self, path: str) -> str:
        """Where the reader finds what the contract calls `path`."""
        for here, there in self.moved.items():
            if path == here or path.startswith((f"{here}.", f"{here}[")):
                return there + path.removeprefix(here)
        return path


def to_contract(document: Mapping[str, object], kind: CheckType) -> SpecForm:
    """The check's spec fields; fields that only concern the control plane are left out."""
    fields = {key: value for key, value in document.items() if key not in CONTROL_PLANE_FIELDS}
    form = SpecForm(fields)
    for snippet in _SNIPPETS:
        if fields.pop(snippet, None) is not None:
            form.wrong.append((f"$.{snippet}", _NO_SNIPPETS))
    if kind in SCRIPT_TYPES and fields.get("shouldFail") is False:
        del fields["shouldFail"]  # the public API shows it with every check
    for public, ours in _RENAMED.items():
        if public in fields:
            fields[ours] = fields.pop(public)
            form.moved[f"$.{ours}"] = f"$.{public}"
    _take_runtime(form, scripted=kind in SCRIPT_TYPES or any(map(fields.get, _PHASES)))
    _lift_assertions(form)
    if kind is CheckType.HEARTBEAT:
        _flatten_heartbeat(form)
    fields["type"] = kind.value
    return replace(form, fields=_stringify_values(fields))


def _take_runtime(form: SpecForm, *, scripted: bool) -> None:
    """Where nothing is scripted a runtime is no matter to a run."""
    given = form.fields.pop("runtimeId", None)
    if not scripted or given is None or given == "":
        return
    if isinstance(given, str) and (problem := runtime_problem(given)):
        form.wrong.append(("$.runtimeId", problem))
    elif isinstance(given, int | float) and not isinstance(given, bool):
        # In the words of the API: nobody can tell 2026.1 from 2026.10 any more.
        quoted = f'put it in quotes, as in "{next(iter(RUNTIMES))}"'
        form.wrong.append(("$.runtimeId", f"is the number {given}; {quoted}"))
    else:
        form.fields["runtimeId"] = given


def _lift_assertions(form: SpecForm) -> None:
    """The public form keeps assertions in the request."""
    fields = form.fields
    request = fields.get("request")
    if not isinstance(request, dict) or "assertions" not in request:
        return
    fields["request"] = {key: value for key, value in request.items() if key != "assertions"}
    if "assertions" in fields:
        twice = "conflicts with $.assertions; keep one of them"
        form.wrong.append(("$.request.assertions", twice))
        return
    fields["assertions"] = request["assertions"]
    form.moved["$.assertions"] = "$.request.assertions"


def _flatten_heartbeat(form: SpecForm) -> None:
    fields = form.fields
    if "heartbeat" in fields and fields["heartbeat"] is not None:
        heartbeat = fields.pop("heartbeat")
        if not isinstance(heartbeat, dict):
            form.wrong.append(("$.heartbeat", _HEARTBEAT_HOLDS))
            heartbeat = _ANY_HEARTBEAT
        _take_heartbeat(form, heartbeat)
    fields.pop("heartbeat", None)
    for name in _SHOWN_WITH_HEARTBEATS:
        fields.pop(name, None)
    if fields.get("pingToken") is None:
        # The service makes one when the check is created; a single run needs none.
        fields["pingToken"] = "none"


def _take_heartbeat(form: SpecForm, heartbeat: Mapping[str, object]) -> None:
    for name in ("period", "grace"):
        form.fields[f"{name}Seconds"] = _seconds(form, heartbeat, name)
        form.moved[f"$.{name}Seconds"] = f"$.heartbeat.{name}"
    rest = {key: heartbeat[key] for key in heartbeat if key not in _HEARTBEAT_TIMES}
    form.moved.update({f"$.{key}": f"$.heartbeat.{key}" for key in rest})
    form.fields.update(rest)


_HEARTBEAT_TIMES: Final = frozenset({"period", "periodUnit", "grace", "graceUnit"})
_HEARTBEAT_HOLDS: Final = "must have period, periodUnit, grace and graceUnit"
_ANY_TIME_S: Final = 60.0
_ANY_HEARTBEAT: Final = {
    "period": _ANY_TIME_S,
    "periodUnit": TimeUnit.SECONDS,
    "grace": _ANY_TIME_S,
    "graceUnit": TimeUnit.SECONDS,
}
"""In the place of one that is refused, so that the rest of the check can still be read."""
_SHOWN_WITH_HEARTBEATS: Final = ("shouldFail", "pingUrl")
"""What the public API shows with a heartbeat check, and means nothing to a run."""


def _seconds(form: SpecForm, heartbeat: Mapping[str, object], name: str) -> float:
    unit, amount = heartbeat.get(f"{name}Unit"), heartbeat.get(name)
    known = TimeUnit(unit) if isinstance(unit, str) and unit in list(TimeUnit) else None
    if known is None:
        units = ", ".join(TimeUnit)
        form.wrong.append((f"$.heartbeat.{name}Unit", f"is {render(unit)}; use one of {units}"))
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        of = f" of {known}" if known else ""
        form.wrong.append((f"$.heartbeat.{name}", f"is {render(amount)}; use a number{of}"))
    elif known is not None:
        return amount * SECONDS_PER[known]
    return _ANY_TIME_S


def _stringify_values(fields: dict[str, object]) -> dict[str, object]:
    """`target: 200` and `value: 1` mean text, and an empty regex means none."""
    shaped = dict(fields)
    if isinstance(assertions := shaped.get("assertions"), list):
        shaped["assertions"] = [_assertion(each) for each in assertions]
    if isinstance(request := shaped.get("request"), dict):
        pairs = {
            key: [_stringify(each, "value") for each in value]
            for key, value in request.items()
            if key in {"headers", "queryParameters"} and isinstance(value, list)
        }
        shaped["request"] = {**request, **pairs}
    return shaped


def _assertion(assertion: object) -> object:
    if isinstance(assertion, dict) and assertion.get("regex") == "":
        assertion = {**assertion, "regex": None}
    return _stringify(assertion, "target")


def _stringify(entry: object, key: str) -> object:
    if not isinstance(entry, dict) or not isinstance(entry.get(key), (bool, int, float)):
        return entry
    return {**entry, key: to_text(entry[key])}


def to_text(value: object) -> str:
    """A plain scalar as JSON would write it, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
