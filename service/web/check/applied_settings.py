"""The settings of a check as they apply, each with where it comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from contract.checks import SCRIPT_TYPES, CheckType
from service.alerting.model import UNLIMITED
from service.checks.model import CheckRow
from service.checks.types.registry import TYPES
from service.groups.model import GroupRow
from service.web.check.heading import describe_schedule, describe_target
from service.web.words import format_duration

_Doc = Mapping[str, Any]
BUILT_IN: Final = "built in"
CHECK: Final = "this check"
ACCOUNT: Final = "account"
_THRESHOLDS: Final = (
    ("degradedResponseTime", "Degraded above"),
    ("maxResponseTime", "Failed above"),
    ("degradedPacketLossThreshold", "Degraded from a loss of"),
    ("maxPacketLossThreshold", "Failed from a loss of"),
)


@dataclass(frozen=True, slots=True)
class AppliedSetting:
    """A setting as it applies."""

    label: str
    value: str
    origin: str
    """Who says so: this check, its group, the account, or nobody: it is built in."""


class SettingsReader:
    """Tells of each setting what applies and who says so."""

    def __init__(
        self,
        check: CheckRow,
        group: GroupRow | None,
        of_account: _Doc | None,
        *,
        service_name: str,
    ) -> None:
        self._kind = CheckType(check.type)
        self._doc: _Doc = check.doc
        self._applied: _Doc = check.effective
        self._group = group
        self._of_account = of_account
        """The alert settings of the account. None: nobody has chosen any."""
        self._service_name = service_name
        """What its incidents are about. Empty: it opens none, or that was deleted."""
        self._defaults: _Doc = {
            info.alias or name: info.get_default(call_default_factory=True)
            for name, info in TYPES[self._kind].write.model_fields.items()
            if not info.is_required()
        }

    def read(self) -> list[AppliedSetting]:
        """All of them, in the order of a page."""
        found = [
            self._setting("Looks at", describe_target(self._kind, self._applied), CHECK),
            self._setting("Schedule", self._schedule(), self._origin("frequency")),
            self._setting("Locations", self._places(), self._origin_of_places()),
            self._setting(
                "At each time",
                "at all locations" if self._applied["runParallel"] else "at one location in turn",
                self._origin("runParallel"),
            ),
            self._setting("Retries", self._retries(), self._origin_of_retries()),
            *(
                self._setting(label, self._limit(name), self._origin(name))
                for name, label in _THRESHOLDS
                if name in self._applied
            ),
            self._setting(
                "Expects a failure",
                "yes" if self._applied["shouldFail"] else "no",
                self._origin("shouldFail"),
            ),
            *self._alerting(),
            self._setting(
                "Muted",
                "yes: nobody is notified" if self._applied["muted"] else "no",
                self._origin("muted"),
            ),
            self._setting("Opens an incident", self._incident(), self._origin("triggerIncident")),
            self._setting("Runtime", self._runtime(), self._origin("runtimeId")),
            self._setting("Tags", ", ".join(self._applied["tags"]), self._origin("tags")),
        ]
        return [one for one in found if one.value]

    def _setting(self, label: str, value: str, origin: str) -> AppliedSetting:
        return AppliedSetting(label, value, origin)

    @property
    def _group_name(self) -> str:
        return f"group {self._group.name}" if self._group else CHECK

    def _origin(self, name: str) -> str:
        applied, own = self._applied.get(name), self._doc.get(name)
        if applied != own:
            return self._group_name
        return BUILT_IN if own == _plain(self._defaults.get(name)) else CHECK

    def _origin_of_places(self) -> str:
        has_own = self._doc["locations"] or self._doc["privateLocations"]
        if has_own:
            return CHECK
        return self._group_name if self._group else BUILT_IN

    def _origin_of_retries(self) -> str:
        applied = (self._applied["retryStrategy"], self._applied["doubleCheck"])
        own = (self._doc["retryStrategy"], self._doc["doubleCheck"])
        if applied != own:
            return self._group_name
        return BUILT_IN if own == (None, True) else CHECK

    def _schedule(self) -> str:
        return describe_schedule(self._kind, self._applied)

    def _places(self) -> str:
        return ", ".join((*self._applied["privateLocations"], *self._applied["locations"]))

    def _retries(self) -> str:
        if self._kind in (CheckType.HEARTBEAT, CheckType.PLAYWRIGHT):
            return ""
        strategy = self._applied["retryStrategy"]
        if strategy is None:
            return "one, at once" if self._applied["doubleCheck"] else "none"
        return describe_retries(strategy)

    def _limit(self, name: str) -> str:
        value = self._applied[name]
        if value is None:
            return "never"
        return f"{value:g} %" if "Loss" in name else format_duration(value)

    def _incident(self) -> str:
        wanted = self._applied.get("triggerIncident")
        if not wanted:
            return "no"
        severity, service = wanted["severity"].lower(), self._service_name or "a deleted service"
        mails = " (subscribers get mails)" if wanted["notifySubscribers"] else ""
        return f"{severity} incident of {service}{mails}: {wanted['name']}"

    def _runtime(self) -> str:
        if self._kind not in SCRIPT_TYPES:
            return ""
        return self._applied["runtimeId"] or "the newest of the agent"

    def _alerting(self) -> Sequence[AppliedSetting]:
        settings, origin = self.alert_settings()
        return [self._setting(label, value, origin) for label, value in describe_alerting(settings)]

    def alert_settings(self) -> tuple[_Doc, str]:
        """The alert settings that apply, and who says so."""
        applied = self._applied
        if applied["useGlobalAlertSettings"] is False and applied["alertSettings"]:
            own = self._doc["useGlobalAlertSettings"] is False
            return applied["alertSettings"], CHECK if own else self._group_name
        if self._of_account is not None:
            return self._of_account, ACCOUNT
        return {}, BUILT_IN


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)


def describe_retries(strategy: _Doc) -> str:
    """A retry strategy in words."""
    pause_s = strategy["baseBackoffSeconds"]
    pause = format_duration(pause_s * 1000)
    if strategy["type"] == "SINGLE_RETRY":
        return f"one, after {pause}" if pause_s else "one, at once"
    most = f"up to {strategy['maxRetries'] or 2}"
    if not pause_s:
        return f"{most}, each at once"
    growth = {"LINEAR": ", growing", "EXPONENTIAL": ", growing exponentially"}.get(
        strategy["type"], ""
    )
    return f"{most}, {pause} apart{growth}"


def describe_alerting(settings: _Doc) -> list[tuple[str, str]]:
    """Alert settings in words; what they leave out has its built-in value."""
    if settings.get("escalationType", "RUN_BASED") == "TIME_BASED":
        minutes = settings.get("timeBasedEscalation", {}).get("minutesFailingThreshold", 5)
        after = f"{minutes} min without a pass"
    else:
        runs = settings.get("runBasedEscalation", {}).get("failedRunThreshold", 1)
        after = "the first failed run" if runs == 1 else f"{runs} failed runs in a row"
    share = settings.get("parallelRunFailureThreshold", {})
    if share.get("enabled"):
        after += f", at {share.get('percentage', 10)} % of the locations or more"
    reminders = settings.get("reminders", {})
    amount, interval = reminders.get("amount", 0), reminders.get("interval", 5)
    again = "none"
    if amount == UNLIMITED:
        again = f"every {interval} min until it passes"
    elif amount:
        again = f"{amount}, {interval} min apart"
    return [("Alerts after", after), ("Reminders", again)]
