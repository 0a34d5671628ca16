"""Gives checks that run here what their group says, as a service does. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from contract.checks import CheckType

_BASE_URL: Final = "GROUP_BASE_URL"


def with_group(
    check: Mapping[str, Any], kind: CheckType, group: Mapping[str, Any]
) -> dict[str, Any]:
    """The body of the check with the variables, the request and the runtime of the group.

    What the check says wins. Scripts of the group run before and after those of the check, and
    are not part of the answer.
    """
    defaults = group.get("apiCheckDefaults") or {}
    base_url = [{"key": _BASE_URL, "value": defaults["url"]}] if defaults.get("url") else []
    variables = _join(
        check.get("environmentVariables") or (),
        [*(group.get("environmentVariables") or ()), *base_url],
        any_case=False,
    )
    whole = {**check, "runtimeId": check.get("runtimeId") or group.get("runtimeId")}
    if kind in (CheckType.URL, CheckType.API) or kind.value in _SCRIPTED:
        whole["environmentVariables"] = variables
    if kind is CheckType.API:
        whole["request"] = _request(check.get("request") or {}, defaults)
    return whole


_SCRIPTED: Final = frozenset({"BROWSER", "MULTI_STEP", "PLAYWRIGHT"})


def _request(request: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    credentials = defaults.get("basicAuth") or {}
    given = credentials if credentials.get("username") or credentials.get("password") else None
    return {
        **request,
        "headers": _join(
            request.get("headers") or (), defaults.get("headers") or (), any_case=True
        ),
        "queryParameters": _join(
            request.get("queryParameters") or (),
            defaults.get("queryParameters") or (),
            any_case=False,
        ),
        "basicAuth": request.get("basicAuth") or given,
        "assertions": [*(request.get("assertions") or ()), *(defaults.get("assertions") or ())],
    }


def _join(own: Sequence[Any], given: Sequence[Any], *, any_case: bool) -> list[Any]:
    """Those of the check, and of the group's those of other names."""

    def name(pair: Mapping[str, Any]) -> str:
        key = str(pair["key"])
        return key.lower() if any_case else key

    names = {name(pair) for pair in own}
    return [*own, *(pair for pair in given if name(pair) not in names)]
