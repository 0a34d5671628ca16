"""A check with its group's settings: what the check says wins, then the group, then the account.

What a check has left at its default says nothing, so the group decides it. Lists of places say
nothing when they are empty; `runParallel` and `muted` say something when they are true, `activated`
and `doubleCheck` when they are false: a group can pause, mute or spread all of its checks. Of
requests the parts are joined. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from contract.checks import CheckType
from service.groups.model import GIVES_NO_RETRIES, Form, GroupRow

_RETRY_THEMSELVES: Final = frozenset({CheckType.HEARTBEAT, CheckType.PLAYWRIGHT})
_Doc = Mapping[str, Any]


def apply_group(doc: _Doc, kind: CheckType, group: GroupRow) -> dict[str, Any]:
    """The check as it runs, in the form of `doc`, which is how it was written."""
    of_group = group.doc
    whole = {
        **doc,
        "activated": doc["activated"] and of_group["activated"],
        "muted": doc["muted"] or of_group["muted"],
        "tags": list(dict.fromkeys([*doc["tags"], *of_group["tags"]])),
        "runParallel": doc["runParallel"] or bool(of_group["runParallel"]),
        "runtimeId": doc["runtimeId"] or of_group["runtimeId"],
        **_choose_locations(doc, of_group),
        **_choose_alerting(doc, of_group),
    }
    if kind not in _RETRY_THEMSELVES:
        whole |= _choose_retries(doc, group)
    if kind is CheckType.API:
        whole["request"] = _join_request(doc["request"], of_group["apiCheckDefaults"])
    return whole


def _choose_locations(doc: _Doc, of_group: _Doc) -> dict[str, Any]:
    """All of one or all of the other: half of a list would be nobody's choice."""
    source = doc if doc["locations"] or doc["privateLocations"] else of_group
    return {field: source[field] for field in ("locations", "privateLocations")}


def _choose_retries(doc: _Doc, group: GroupRow) -> dict[str, Any]:
    given = group.doc["retryStrategy"]
    if doc["retryStrategy"] or not doc["doubleCheck"] or given == GIVES_NO_RETRIES:
        return {}
    if given:
        return {"retryStrategy": given}
    return {"doubleCheck": bool(group.form is Form.V2 or group.doc["doubleCheck"])}


def _choose_alerting(doc: _Doc, of_group: _Doc) -> dict[str, Any]:
    has_own = doc["useGlobalAlertSettings"] is False
    gives = of_group["alertSettings"] is not None and not of_group["useGlobalAlertSettings"]
    if not gives or has_own:
        return {}
    return {"alertSettings": of_group["alertSettings"], "useGlobalAlertSettings": False}


def _join_request(request: _Doc, defaults: _Doc) -> dict[str, Any]:
    credentials = defaults["basicAuth"]
    return {
        **request,
        "headers": _join(request["headers"], defaults["headers"], any_case=True),
        "queryParameters": _join(
            request["queryParameters"], defaults["queryParameters"], any_case=False
        ),
        "basicAuth": request["basicAuth"]
        or (credentials if _has_credentials(credentials) else None),
        "assertions": [*request["assertions"], *defaults["assertions"]],
    }


def _join(own: Sequence[_Doc], given: Sequence[_Doc], *, any_case: bool) -> list[_Doc]:
    """Those of the check, and of the group's those of other names."""

    def name(pair: _Doc) -> str:
        key: str = pair["key"]
        return key.lower() if any_case else key

    names = {name(pair) for pair in own}
    return [*own, *(pair for pair in given if name(pair) not in names)]


def _has_credentials(credentials: _Doc | None) -> bool:
    """Clients send empty texts for none."""
    return credentials is not None and bool(credentials["username"] or credentials["password"])
