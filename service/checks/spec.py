"""From a check as people write it to what a run needs; pure."""

from typing import Any, Final

import msgspec

from contract.checks import SPEC_TYPES, CheckSpec, CheckType, HeartbeatSpec
from service.checks.bodies import (
    AnyCheckWrite,
    ApiCheckWrite,
    BrowserCheckWrite,
    DnsCheckWrite,
    HeartbeatCheckWrite,
    IcmpCheckWrite,
    MultiStepCheckWrite,
    PlaywrightCheckWrite,
    TcpCheckWrite,
    UrlCheckWrite,
)

_TYPES: Final[dict[type[AnyCheckWrite], CheckType]] = {
    UrlCheckWrite: CheckType.URL,
    ApiCheckWrite: CheckType.API,
    TcpCheckWrite: CheckType.TCP,
    DnsCheckWrite: CheckType.DNS,
    IcmpCheckWrite: CheckType.ICMP,
    HeartbeatCheckWrite: CheckType.HEARTBEAT,
    BrowserCheckWrite: CheckType.BROWSER,
    MultiStepCheckWrite: CheckType.MULTI_STEP,
    PlaywrightCheckWrite: CheckType.PLAYWRIGHT,
}
_ELSEWHERE: Final = {
    "setupScript": "localSetupScript",
    "teardownScript": "localTearDownScript",
    "bundleSha256": "codeBundlePath",
}
"""Fields of specs that bodies call otherwise."""


def type_of(check: AnyCheckWrite) -> CheckType:
    """The type that a body belongs to."""
    return _TYPES[type(check)]


def doc_of(check: AnyCheckWrite) -> dict[str, Any]:
    """The check as it is stored and shown, every default filled in."""
    whole: dict[str, Any] = _whole(check.model_dump(mode="json", by_alias=True))
    return whole


def spec_of(check: AnyCheckWrite, *, ping_token: str | None = None) -> CheckSpec:
    """What a run of the check needs.

    A heartbeat needs its ping token. The spellings of bodies and specs are the same but for a few,
    and for assertions, which bodies keep inside `request`. Snippets come into a spec by
    `service.checks.scripted`.
    """
    if isinstance(check, HeartbeatCheckWrite):
        return HeartbeatSpec(
            period_s=check.heartbeat.period_s,
            grace_s=check.heartbeat.grace_s,
            ping_token=ping_token or "",
        )
    doc, kind = doc_of(check), type_of(check)
    fields = {**doc, "type": kind.value}
    fields |= {name: doc[given] for name, given in _ELSEWHERE.items() if given in doc}
    if "request" in doc:
        fields["assertions"] = doc["request"]["assertions"]
    return msgspec.convert(fields, SPEC_TYPES[kind])


def _whole(value: Any) -> Any:
    """5000, not 5000.0: some clients read a whole number only without its point."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return value
