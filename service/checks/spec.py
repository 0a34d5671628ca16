"""From a check as people write it to what a run needs; pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from contract.checks import SECONDS_PER, SPEC_TYPES, CheckSpec, CheckType, HeartbeatSpec, TimeUnit
from service.checks.bodies import ApiCheckWrite, UrlCheckWrite
from service.checks.script_bodies import PlaywrightCheckWrite, ScriptCheckWrite
from service.checks.typed_bodies import AnyCheckWrite
from service.http.strict import Strict
from service.variables.bodies import EnvironmentVariable

_NOT_IN_DOC: Final = {"environment_variables", "check_type"}
_ELSEWHERE: Final = {
    "setupScript": "localSetupScript",
    "teardownScript": "localTearDownScript",
    "bundleSha256": "codeBundlePath",
}
"""Fields of specs that bodies call otherwise."""


def type_of(check: AnyCheckWrite) -> CheckType:
    """The type that a body belongs to."""
    return check.kind


def doc_of(body: Strict) -> dict[str, Any]:
    """A body as it is stored, every default filled in; its variables are stored elsewhere."""
    dumped = body.model_dump(mode="json", by_alias=True, exclude=_NOT_IN_DOC)
    whole: dict[str, Any] = _whole(dumped)
    return whole


def variables_of(check: AnyCheckWrite) -> list[EnvironmentVariable] | None:
    """The check's own variables. None: its type has none."""
    match check:
        case UrlCheckWrite() | ApiCheckWrite() | ScriptCheckWrite() | PlaywrightCheckWrite():
            return check.environment_variables or []
        case _:
            return None


def spec_of(doc: Mapping[str, Any], kind: CheckType) -> CheckSpec:
    """What a run of the check needs.

    The spellings of checks and specs are the same but for a few, and for assertions, which checks
    keep inside `request`. Snippets come into a spec by `service.checks.scripted`.
    """
    if kind is CheckType.HEARTBEAT:
        return _heartbeat(doc["heartbeat"])
    fields = {**doc, "type": kind.value}
    fields |= {name: doc[given] for name, given in _ELSEWHERE.items() if given in doc}
    if kind is CheckType.AGENTIC:
        fields["skills"] = doc["agentRuntime"]["skills"]
    if "request" in doc:
        fields["assertions"] = doc["request"]["assertions"]
    return msgspec.convert(fields, SPEC_TYPES[kind])


def _heartbeat(pings: Mapping[str, Any]) -> HeartbeatSpec:
    return HeartbeatSpec(
        period_s=pings["period"] * SECONDS_PER[TimeUnit(pings["periodUnit"])],
        grace_s=pings["grace"] * SECONDS_PER[TimeUnit(pings["graceUnit"])],
        ping_token=pings["pingToken"],
    )


def _whole(value: Any) -> Any:
    """5000, not 5000.0: some clients read a whole number only without its point."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return value
