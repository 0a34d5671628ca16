"""Makes the resources of a deployment of documents: what is named becomes a reference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from contract.checks import CheckType
from contract.suggestions import suggest_name
from picket.check_file.validate import render
from picket.code.reading.check_body import CheckBody, check_body
from picket.code.reading.documents import Document, Kind, Project
from picket.code.reading.other_bodies import other_body
from picket.errors import CommandError

_MOST_LINES: Final = 20
_ELSEWHERE: Final = {
    "clientCertificates": "the service has them for all checks",
    "proxyUrl": "the service has it for each location",
    "variables": "the service has none for checks of this type",
}
_PLACES: Final = "privateLocations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of a deployment."""

    type: str
    logical_id: str
    payload: dict[str, Any] | None
    """The body of its API, with `{"ref": …}` for what another resource is. None: it exists."""
    source: str | None = None
    physical_id: str | None = None
    document: Document | None = None
    """What it was made of. None: it says how two others belong together, or is at a service."""

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from the other resources of its project."""
        return self.type, self.logical_id

    def to_wire(self) -> dict[str, Any]:
        """The resource in the body of a deployment."""
        whole = {
            "type": self.type,
            "logicalId": self.logical_id,
            "member": self.payload is not None,
            "payload": self.payload,
            "physicalId": self.physical_id,
            "sourceFile": self.source,
        }
        return {key: value for key, value in whole.items() if value is not None or key == "payload"}


@dataclass(slots=True)
class Linked:
    """All resources of a project."""

    resources: list[Resource] = field(default_factory=list)
    shared_files: list[dict[str, str]] = field(default_factory=list)
    checks: dict[str, CheckBody] = field(default_factory=dict)
    """The checks as they were read, by logical id."""
    notes: list[str] = field(default_factory=list)
    """What is in the files and has no effect at a service."""

    def share(self, file: Mapping[str, str]) -> int:
        """The number of a file that several checks may have."""
        content = {"path": file["path"], "content": file["content"]}
        if content not in self.shared_files:
            self.shared_files.append(content)
        return self.shared_files.index(content)


def link(project: Project, locations: Mapping[str, str]) -> Linked:
    """Make the resources.

    `locations`: the private locations that exist, id by slug.

    Raises:
        CommandError: one line per wrong field, or for a name that nothing has.
    """
    return _Linker(project.documents, locations).link()


class _Linker:
    """Links the documents of one project."""

    def __init__(self, documents: Sequence[Document], locations: Mapping[str, str]) -> None:
        self._documents = documents
        self._locations = locations
        self._linked = Linked()
        self._wrong: list[str] = []
        self._by_id = {(one.kind, one.logical_id): one for one in documents}
        self._made: set[tuple[str, str]] = set()

    def link(self) -> Linked:
        for document in self._documents:
            try:
                self._add(document)
            except CommandError as problem:
                self._wrong.append(problem.message)
        if self._wrong:
            raise CommandError("\n".join(self._wrong[:_MOST_LINES]))
        return self._linked

    def _add(self, document: Document) -> None:
        if document.kind is Kind.CHECK:
            body = check_body(document)
            self._linked.checks[document.logical_id] = body
            payload = self._check_payload(document, body)
        else:
            payload = other_body(document)
            if document.kind is Kind.STATUS_PAGE:
                payload = {**payload, "cards": self._cards(document)}
        self._put(
            Resource(
                type=document.kind.resource_type,
                logical_id=document.logical_id,
                payload=payload,
                source=document.source,
                physical_id=document.physical_id,
                document=document,
            )
        )
        self._add_subscriptions(document)
        self._add_places(document)

    def _put(self, resource: Resource) -> None:
        if resource.key not in self._made:
            self._made.add(resource.key)
            self._linked.resources.append(resource)

    def _check_payload(self, document: Document, body: CheckBody) -> dict[str, Any]:
        payload = dict(body.fields)
        if body.dependencies:
            payload["dependencies"] = [self._linked.share(one) for one in body.dependencies]
        if (group := document.fields.get("group")) is not None:
            payload["groupId"] = self._ref(document, Kind.GROUP, group, "$.group")
        incident = payload.get("triggerIncident")
        if isinstance(incident, dict) and "service" in incident:
            name, rest = incident["service"], {k: v for k, v in incident.items() if k != "service"}
            where = "$.triggerIncident.service"
            service = self._ref(document, Kind.STATUS_PAGE_SERVICE, name, where)
            payload["triggerIncident"] = {**rest, "serviceId": service}
        self._linked.notes.extend(
            f"{document.source}: $.{field} is for `picket run` alone; {_ELSEWHERE[field]}"
            for field in body.ignored
        )
        return payload

    def _cards(self, document: Document) -> list[Any]:
        cards = document.fields["cards"]
        if not isinstance(cards, list):
            raise CommandError(f"{document.source}: $.cards is {render(cards)}; use a list")
        return [self._card(document, order, card) for order, card in enumerate(cards)]

    def _card(self, document: Document, order: int, card: object) -> object:
        if not isinstance(card, dict):
            raise CommandError(
                f"{document.source}: $.cards[{order}] is {render(card)}; use name and services"
            )
        path = f"$.cards[{order}].services"
        services = [
            self._ref(document, Kind.STATUS_PAGE_SERVICE, one, path)
            for one in _names(document, card.get("services"), path)
        ]
        return {**card, "services": services}

    def _ref(self, document: Document, kind: Kind, name: object, path: str) -> dict[str, str]:
        found = self._find(kind, name)
        if found is not None:
            return {"ref": found.logical_id}
        known = {one.name for one in self._documents if one.kind is kind}
        near = suggest_name(name, known) if isinstance(name, str) else None
        fix = f"did you mean {near}?" if near else f"no {kind} in the files has this id or name"
        self._wrong.append(f"{document.source}: {path} is {render(name)}; {fix}")
        return {"ref": str(name)}

    def _find(self, kind: Kind, name: object) -> Document | None:
        if not isinstance(name, str):
            return None
        if (found := self._by_id.get((kind, name))) is not None:
            return found
        named = [one for one in self._documents if one.kind is kind and one.name == name]
        return named[0] if len(named) == 1 else None

    def _add_subscriptions(self, document: Document) -> None:
        kinds = {"channels": Kind.ALERT_CHANNEL, "checks": Kind.CHECK, "groups": Kind.GROUP}
        for field_name, kind in kinds.items():
            path = f"$.{field_name}"
            for name in _names(document, document.fields.get(field_name), path):
                other = self._find(kind, name)
                if other is None:
                    self._ref(document, kind, name, path)
                elif document.kind is Kind.ALERT_CHANNEL:
                    self._subscribe(document, other, document)
                elif document.kind in (Kind.CHECK, Kind.GROUP):
                    self._subscribe(other, document, document)

    def _subscribe(self, channel: Document, target: Document, said_by: Document) -> None:
        field_name = "checkId" if target.kind is Kind.CHECK else "groupId"
        self._put(
            Resource(
                type="alert-channel-subscription",
                logical_id=f"{channel.logical_id}#{target.kind}#{target.logical_id}",
                payload={
                    "alertChannelId": {"ref": channel.logical_id},
                    field_name: {"ref": target.logical_id},
                    "activated": True,
                },
                source=said_by.source,
            )
        )

    def _add_places(self, document: Document) -> None:
        if document.kind not in (Kind.CHECK, Kind.GROUP):
            return
        field_name, word = (
            ("checkId", "check") if document.kind is Kind.CHECK else ("groupId", "group")
        )
        for slug in _names(document, document.fields.get(_PLACES), f"$.{_PLACES}"):
            place = self._place(document, slug)
            self._put(
                Resource(
                    type=f"private-location-{word}-assignment",
                    logical_id=f"{document.logical_id}#{place}",
                    payload={
                        "privateLocationId": {"ref": place},
                        field_name: {"ref": document.logical_id},
                    },
                    source=document.source,
                )
            )

    def _place(self, document: Document, slug: str) -> str:
        """The logical id of a location of the files, or of one that exists at the service."""
        kind = Kind.PRIVATE_LOCATION
        for one in self._documents:
            if one.kind is kind and slug in (one.fields.get("slugName"), one.logical_id):
                return one.logical_id
        if (physical_id := self._locations.get(slug)) is not None:
            logical_id = f"location-{slug}"
            self._put(
                Resource(
                    type=kind.resource_type,
                    logical_id=logical_id,
                    payload=None,
                    physical_id=physical_id,
                )
            )
            return logical_id
        near = suggest_name(slug, self._locations)
        fix = f"did you mean {near}?" if near else _list_places(self._locations)
        self._wrong.append(f"{document.source}: $.{_PLACES} has {render(slug)}; {fix}")
        return slug


def _list_places(locations: Mapping[str, str]) -> str:
    return f"the service has {', '.join(sorted(locations)) or 'no private location'}"


def _names(document: Document, given: object, path: str) -> Iterator[str]:
    if given is None:
        return
    if not isinstance(given, list):
        raise CommandError(f"{document.source}: {path} is {render(given)}; use a list of names")
    for order, one in enumerate(given):
        if not isinstance(one, str):
            raise CommandError(f"{document.source}: {path}[{order}] is {render(one)}; use a name")
        yield one


def is_heartbeat(body: CheckBody) -> bool:
    """Whether the check waits for pings, and so never runs on demand."""
    return body.kind is CheckType.HEARTBEAT
