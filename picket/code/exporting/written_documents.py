"""Makes documents of what a service has: names for ids, and references for secrets. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from contract.checks import CheckType
from picket.code.exporting.api_defaults import ApiDefaults
from picket.code.reading.documents import Kind, slug_of
from picket.code.reading.env_values import escape
from redaction.policy import SENSITIVE_HEADERS

_FOLDERS: Final = {
    Kind.CHECK: "checks",
    Kind.GROUP: "groups",
    Kind.ALERT_CHANNEL: "alert-channels",
    Kind.PRIVATE_LOCATION: "private-locations",
    Kind.MAINTENANCE_WINDOW: "maintenance-windows",
    Kind.STATUS_PAGE: "status-pages",
    Kind.STATUS_PAGE_SERVICE: "status-page-services",
}
_NAME_OF_CHANNEL: Final = ("name", "address", "serviceName", "channel", "number")
SECRET_CONFIG: Final = {
    "SLACK": ("url",),
    "WEBHOOK": ("url", "webhookSecret"),
    "PAGERDUTY": ("serviceKey",),
    "OPSGENIE": ("apiKey",),
}
"""What of the config of a channel is secret, by its type; a test holds it to the service's."""
_NOT_IN_NAMES: Final = re.compile(r"[^A-Z0-9]+")
_CREDENTIALS: Final = re.compile(r"(?P<scheme>[a-z0-9]+://)(?P<both>[^/?#@]*)@")
_PHASES: Final = {"localSetupScript": "setupScript", "localTearDownScript": "teardownScript"}
_V1_GROUPS: Final = "/v1/check-groups"
_V2_GROUPS: Final = "/v2/check-groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What an account has, as the API answers."""

    checks: Sequence[Mapping[str, Any]] = ()
    groups: Sequence[Mapping[str, Any]] = ()
    channels: Sequence[Mapping[str, Any]] = ()
    locations: Sequence[Mapping[str, Any]] = ()
    windows: Sequence[Mapping[str, Any]] = ()
    pages: Sequence[Mapping[str, Any]] = ()
    services: Sequence[Mapping[str, Any]] = ()
    projects: Mapping[str, Collection[tuple[str, str]]] = field(default_factory=dict)
    """Names of projects, with the types and ids of the resources that each of them owns."""

    def of_kind(self, kind: Kind) -> Sequence[Mapping[str, Any]]:
        """All of one kind that no project owns."""
        owned = {one for resources in self.projects.values() for one in resources}
        found = {
            Kind.CHECK: self.checks,
            Kind.GROUP: self.groups,
            Kind.ALERT_CHANNEL: self.channels,
            Kind.PRIVATE_LOCATION: self.locations,
            Kind.MAINTENANCE_WINDOW: self.windows,
            Kind.STATUS_PAGE: self.pages,
            Kind.STATUS_PAGE_SERVICE: self.services,
        }[kind]
        return [one for one in found if (kind.resource_type, str(one["id"])) not in owned]


@dataclass(slots=True)
class Written:
    """The files of an export."""

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Documents by path."""
    files: dict[str, str] = field(default_factory=dict)
    """Scripts by path."""
    secrets: list[str] = field(default_factory=list)
    """Names of variables that have to be set before the files are applied."""
    notes: list[str] = field(default_factory=list)
    """What the files cannot say."""


def write_documents(account: Account, defaults: ApiDefaults) -> Written:
    """All documents of an account."""
    return _Writer(account, defaults).write()


class _Writer:
    """Writes the documents of one account."""

    def __init__(self, account: Account, defaults: ApiDefaults) -> None:
        self._account = account
        self._defaults = defaults
        self._written = Written()
        self._written.notes += [
            f"The project {name} has {len(resources)} resources, which are left out: their code is"
            " elsewhere."
            for name, resources in account.projects.items()
            if resources
        ]
        self._ids = {
            (kind, str(one["id"])): logical_id
            for kind in Kind
            for one, logical_id in _with_ids(account.of_kind(kind), kind)
        }

    def write(self) -> Written:
        makers = {
            Kind.CHECK: self._check,
            Kind.GROUP: self._group,
            Kind.ALERT_CHANNEL: self._channel,
            Kind.PRIVATE_LOCATION: self._location,
            Kind.MAINTENANCE_WINDOW: self._window,
            Kind.STATUS_PAGE: self._page,
            Kind.STATUS_PAGE_SERVICE: self._service,
        }
        for kind, make in makers.items():
            for one in self._account.of_kind(kind):
                logical_id = self._ids[kind, str(one["id"])]
                head: dict[str, Any] = {} if kind is Kind.CHECK else {"kind": kind.value}
                head |= {"id": logical_id, "physicalId": one["id"]}
                # Paths of scripts are relative to their document: it stands where they begin.
                is_scripted = kind is Kind.CHECK and "script" in one
                name = f"{logical_id}/check" if is_scripted else logical_id
                self._written.documents[f"{_FOLDERS[kind]}/{name}.yaml"] = head | make(
                    one, logical_id
                )
        self._written.secrets = sorted(set(self._written.secrets))
        return self._written

    def _check(self, one: Mapping[str, Any], logical_id: str) -> dict[str, Any]:
        kind = CheckType(one["checkType"])
        fields = self._defaults.of_check(kind, one)
        document = {"type": kind.value, "name": fields.pop("name")}
        self._name_group(fields, document)
        self._share(fields, document, logical_id)
        if incident := fields.pop("triggerIncident", None):
            service = self._name(one, Kind.STATUS_PAGE_SERVICE, incident.pop("serviceId", None))
            document["triggerIncident"] = {"service": service, **incident} if service else None
        if heartbeat := fields.get("heartbeat"):
            heartbeat.pop("pingToken", None)  # the service keeps it, and another makes its own
        if isinstance(request := fields.get("request"), dict):
            if assertions := request.pop("assertions", None):
                fields["assertions"] = assertions
            self._hide_request(request, logical_id)
        if "script" in fields:
            self._move_script(fields, logical_id)
        if "codeBundlePath" in fields:
            self._note(one, "its code stays at the service; name its folder in suiteFolder")
        for name in ("setupSnippetId", "tearDownSnippetId"):
            if name in fields:
                self._note(one, f"{name} is a snippet of this account")
        return document | fields

    def _name_group(self, fields: dict[str, Any], document: dict[str, Any]) -> None:
        if group := self._name(document, Kind.GROUP, fields.pop("groupId", None)):
            document["group"] = group

    def _name(self, user: Mapping[str, Any], kind: Kind, its_id: object) -> str | None:
        """What something that a document uses is called in the files. None: it is not in them."""
        found = self._ids.get((kind, str(its_id)))
        if found is None and its_id is not None:
            self._note(
                user,
                f"it uses the {kind} {its_id}, which is left out; applying the file would end that",
            )
        return found

    def _share(self, fields: dict[str, Any], document: dict[str, Any], logical_id: str) -> None:
        """Channels, variables and scripts, which checks and groups have alike."""
        subscriptions = fields.pop("alertChannelSubscriptions", None) or ()
        channels = {
            self._name(document, Kind.ALERT_CHANNEL, one["alertChannelId"]): one.get("activated")
            for one in subscriptions
        }
        if heard := [str(name) for name, is_on in channels.items() if is_on is not False and name]:
            document["channels"] = heard
        if silent := [str(name) for name, is_on in channels.items() if is_on is False and name]:
            self._note(document, f"{', '.join(silent)} is off for it, which files do not say")
        if variables := fields.pop("environmentVariables", None):
            fields["variables"] = [self._variable(one, logical_id) for one in variables]
        for public, ours in _PHASES.items():
            if text := fields.pop(public, None):
                name = f"{logical_id}.{'setup' if 'etup' in ours else 'teardown'}.js"
                fields[f"{ours}File"] = name
                folder = "checks" if "type" in document else "groups"
                self._written.files[f"{folder}/{name}"] = text

    def _variable(self, one: Mapping[str, Any], logical_id: str) -> dict[str, Any]:
        key = str(one["key"])
        is_secret = one.get("locked") or one.get("secret")
        value = self._secret(logical_id, key) if is_secret else escape(str(one["value"]))
        return {"key": key, **one, "value": value}

    def _secret(self, *words: str) -> str:
        name = _NOT_IN_NAMES.sub("_", "_".join(words).upper()).strip("_")
        name = name if not name[:1].isdigit() else f"_{name}"
        self._written.secrets.append(name)
        return f"${{{name}}}"

    def _hide_request(self, request: dict[str, Any], logical_id: str) -> None:
        for name in ("headers", "queryParameters"):
            if pairs := request.get(name):
                request[name] = [self._pair(one, logical_id) for one in pairs]
        if url := request.get("url"):
            request["url"] = self._address(str(url), logical_id, "CREDENTIALS")
        if credentials := request.get("basicAuth"):
            request["basicAuth"] = self._credentials(credentials, logical_id)

    def _pair(self, one: Mapping[str, Any], logical_id: str) -> dict[str, Any]:
        key, value = str(one["key"]), str(one.get("value", ""))
        is_secret = one.get("locked") or key.lower() in SENSITIVE_HEADERS
        if is_secret and value and "{{" not in value:
            return {**one, "value": self._secret(logical_id, key)}
        return {**one, "value": escape(value)}

    def _credentials(self, given: Mapping[str, Any], logical_id: str) -> dict[str, Any]:
        password = str(given.get("password") or "")
        if password and "{{" not in password:
            return {**given, "password": self._secret(logical_id, "PASSWORD")}
        return {key: escape(str(value)) for key, value in given.items()}

    def _move_script(self, fields: dict[str, Any], logical_id: str) -> None:
        """The script and its files keep their paths, below a folder of the check."""
        path = fields.pop("scriptPath", None)
        fields["scriptFile"] = path or "script.ts"
        if path is None:
            fields["scriptPath"] = None
        folder = f"checks/{logical_id}"
        self._written.files[f"{folder}/{fields['scriptFile']}"] = fields.pop("script")
        if dependencies := fields.pop("dependencies", None):
            fields["dependencyFiles"] = [one["path"] for one in dependencies]
            files = {f"{folder}/{one['path']}": one["content"] for one in dependencies}
            self._written.files.update(files)

    def _group(self, one: Mapping[str, Any], logical_id: str) -> dict[str, Any]:
        is_v1 = one["runParallel"] is not None and one["alertSettings"] is not None
        path = _V1_GROUPS if is_v1 else _V2_GROUPS
        fields = self._defaults.of_other(path, one)
        document: dict[str, Any] = {"name": fields.pop("name")}
        if is_v1:
            document["v"] = 1
        self._share(fields, document, logical_id)
        if defaults := fields.get("apiCheckDefaults"):
            self._hide_request(defaults, logical_id)
        return document | fields

    def _channel(self, one: Mapping[str, Any], logical_id: str) -> dict[str, Any]:
        fields = self._defaults.of_other("/v1/alert-channels", one)
        fields.pop("subscriptions", None)
        kind = str(one["type"])
        config = dict(fields.get("config") or {})
        for name in SECRET_CONFIG.get(kind, ()):
            if config.get(name):
                config[name] = self._secret(logical_id, name)
        for name in ("headers", "queryParameters"):
            if pairs := config.get(name):
                config[name] = [
                    {**pair, "value": self._secret(logical_id, str(pair["key"]))} for pair in pairs
                ]
        hidden = (*SECRET_CONFIG.get(kind, ()), "headers", "queryParameters")
        config = {
            name: escape(value) if isinstance(value, str) and name not in hidden else value
            for name, value in config.items()
        }
        return {"type": kind, **{k: v for k, v in fields.items() if k != "type"}, "config": config}

    def _location(self, one: Mapping[str, Any], logical_id: str) -> dict[str, Any]:
        fields = self._defaults.of_other("/v1/private-locations", one)
        proxy = str(fields.get("proxyUrl") or "")
        if proxy:
            fields["proxyUrl"] = self._address(proxy, logical_id, "PROXY")
        return fields

    def _address(self, address: str, *words: str) -> str:
        """Without user and password."""
        found = _CREDENTIALS.match(address)
        if found is None or "{{" in found["both"]:
            return escape(address)
        return f"{found['scheme']}{self._secret(*words)}@{escape(address[found.end() :])}"

    def _window(self, one: Mapping[str, Any], _logical_id: str) -> dict[str, Any]:
        return self._defaults.of_other("/v1/maintenance-windows", one)

    def _page(self, page: Mapping[str, Any], _logical_id: str) -> dict[str, Any]:
        fields = self._defaults.of_other("/v1/status-pages", page)
        fields["cards"] = [
            {
                "name": card["name"],
                "services": [
                    name
                    for one in card.get("services", ())
                    if (name := self._name(page, Kind.STATUS_PAGE_SERVICE, one["id"]))
                ],
            }
            for card in page["cards"]
        ]
        return fields

    def _service(self, one: Mapping[str, Any], _logical_id: str) -> dict[str, Any]:
        return {"name": one["name"]}

    def _note(self, one: Mapping[str, Any], text: str) -> None:
        self._written.notes.append(f"{one['name']}: {text}")


def _with_ids(
    found: Sequence[Mapping[str, Any]], kind: Kind
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Each with a logical id of its own, made of its name."""
    used: set[str] = set()
    for one in found:
        wanted = slug_of(_name(one, kind))
        logical_id, number = wanted, 1
        while logical_id in used:
            number += 1
            logical_id = f"{wanted}-{number}"
        used.add(logical_id)
        yield one, logical_id


def _name(one: Mapping[str, Any], kind: Kind) -> str:
    if kind is Kind.PRIVATE_LOCATION:
        return str(one["slugName"])
    if kind is not Kind.ALERT_CHANNEL:
        return str(one["name"])
    config = one["config"]
    found = next((config[name] for name in _NAME_OF_CHANNEL if config.get(name)), "")
    return f"{one['type']}-{found}" if found else str(one["type"])


def is_inside(path: str) -> bool:
    """Whether a path of a script stays in its folder."""
    parts = PurePosixPath(path).parts
    return ".." not in parts and not path.startswith("/")
