"""From a check as people write it to what a run needs; pure."""

from collections.abc import Mapping
from typing import Any, Final

from contract.checks import CheckSpec, CheckType
from service.checks.bodies import CheckWrite, VariablesWrite
from service.checks.types.registry import TYPES
from service.http.strict import Strict
from service.variables.bodies import EnvironmentVariable

_NOT_IN_DOC: Final = {"environment_variables", "check_type"}


def type_of(check: CheckWrite) -> CheckType:
    """The type that a body belongs to."""
    return check.kind


def doc_of(body: Strict) -> dict[str, Any]:
    """A body as it is stored, every default filled in; its variables are stored elsewhere."""
    dumped = body.model_dump(mode="json", by_alias=True, exclude=_NOT_IN_DOC)
    whole: dict[str, Any] = _whole(dumped)
    return whole


def variables_of(check: CheckWrite) -> list[EnvironmentVariable] | None:
    """The check's own variables. None: its type has none."""
    return check.environment_variables or [] if isinstance(check, VariablesWrite) else None


def spec_of(doc: Mapping[str, Any], kind: CheckType) -> CheckSpec:
    """What a run of the check needs. Snippets come into a spec by `service.checks.scripted`."""
    return TYPES[kind].write.to_spec(doc)


def _whole(value: Any) -> Any:
    """5000, not 5000.0: some clients read a whole number only without its point."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return value
