"""What a deployment's body says, before anything is looked up: order, references, folding.

Some resources are part of others here: an assignment is a location of its check or group, the
components of a page are its cards, an automation rule is the `triggerIncident` of checks. They are
folded into these before anything is made, so that each is written once.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from contract.targets import format_value
from service.projects.model import Key, Resource, ResourceError, ResourceProblem

LOCATION: Final = "private-location"
SERVICE: Final = "status-page-service"
PAGE: Final = "status-page"
COMPONENT: Final = "status-page-component"
RULE: Final = "status-page-automation-rule"
GROUP: Final = "check-group"
CHECK: Final = "check"
CHANNEL: Final = "alert-channel"
SUBSCRIPTION: Final = "alert-channel-subscription"
WINDOW: Final = "maintenance-window"
CHECK_ASSIGNMENT: Final = "private-location-check-assignment"
GROUP_ASSIGNMENT: Final = "private-location-group-assignment"
DASHBOARD: Final = "dashboard"

ORDER: Final = (
    LOCATION,
    SERVICE,
    COMPONENT,
    PAGE,
    GROUP,
    CHECK,
    CHANNEL,
    SUBSCRIPTION,
    WINDOW,
    RULE,
    CHECK_ASSIGNMENT,
    GROUP_ASSIGNMENT,
)
"""Each type refers to earlier ones only, once what is folded is folded."""
REMOVED_FIRST: Final = (
    SUBSCRIPTION,
    CHECK_ASSIGNMENT,
    GROUP_ASSIGNMENT,
    RULE,
    WINDOW,
    CHECK,
    PAGE,
)
"""They go before anything is made: what is made may have their address or token."""
REMOVED_LAST: Final = (COMPONENT, SERVICE, CHANNEL, GROUP, LOCATION)
"""They go when nothing uses them any more."""
_TOLD: Final = 10
"""How many problems an error names at most."""
_MEANT: Final[Mapping[str, tuple[str, ...]]] = {
    "groupId": (GROUP,),
    "checkId": (CHECK,),
    "alertChannelId": (CHANNEL,),
    "privateLocationId": (LOCATION,),
    "privateLocations": (LOCATION,),
    "serviceId": (SERVICE, COMPONENT),
    "services": (SERVICE, COMPONENT),
    "statusPageId": (PAGE,),
    "parentId": (COMPONENT,),
    "componentId": (COMPONENT,),
}
"""The types that a field refers to. Other fields: whichever has that logical id."""
_SEVERITIES: Final = {
    "MAJOR_OUTAGE": "CRITICAL",
    "PARTIAL_OUTAGE": "MAJOR",
    "DEGRADED_PERFORMANCE": "MEDIUM",
    "UNDER_MAINTENANCE": "MINOR",
}
_UNGROUPED: Final = "Services"
"""The heading of components that are in no group."""

Find = Callable[[str, Resource], object]
"""What stands in the place of a reference: by its field and what it refers to."""


def require_fit(resources: Sequence[Resource]) -> None:
    """Refuse unknown types, names that stand for two resources, and things with two names.

    Raises:
        ResourceError: says which.
    """
    seen: Counter[Key] = Counter()
    taken: Counter[Key] = Counter()
    problems = []
    for one in resources:
        seen[one.key] += 1
        if one.is_member and one.physical_id is not None:
            taken[one.type, one.physical_id] += 1
        if one.type == DASHBOARD:
            why = "dashboards are not supported; use a status page, or remove it from the project."
            problems.append(ResourceProblem(resource=one, message=why))
        elif one.type not in ORDER:
            why = f"resources of type {format_value(one.type)} are not supported; remove it."
            problems.append(ResourceProblem(resource=one, message=why))
        elif seen[one.key] > 1:
            why = f"another {one.type} has this logicalId too; use one of its own."
            problems.append(ResourceProblem(resource=one, message=why))
        elif not one.is_member and one.physical_id is None:
            why = "it is not a member of the project and has no physicalId; set one of them."
            problems.append(ResourceProblem(resource=one, message=why))
        elif one.is_member and taken[one.type, one.physical_id or ""] > 1:
            why = (
                f"another {one.type} has the physicalId {one.physical_id} too; remove one of them."
            )
            problems.append(ResourceProblem(resource=one, message=why))
    raise_all(problems)


def raise_all(problems: Sequence[ResourceProblem]) -> None:
    """Refuse, if there is anything to refuse.

    Raises:
        ResourceError: there is.
    """
    if problems:
        raise ResourceError(tuple(problems[:_TOLD]))


def in_order(resources: Iterable[Resource]) -> list[Resource]:
    """In the order in which they can be made."""
    rank = {kind: number for number, kind in enumerate(ORDER)}
    return sorted(resources, key=lambda one: (rank[one.type], one.order))


class References:
    """Which resources of a deployment can be referred to."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._by_key = {one.key: one for one in resources}
        self._by_name: dict[str, list[Resource]] = defaultdict(list)
        for one in self._by_key.values():
            self._by_name[one.logical_id].append(one)

    def find(self, owner: Resource, field: str, logical_id: str, path: str) -> Resource:
        """What a reference means.

        Raises:
            ResourceError: nothing, or several things.
        """
        if kinds := _MEANT.get(field):
            found = [self._by_key[k, logical_id] for k in kinds if (k, logical_id) in self._by_key]
            noun = kinds[0]
        else:
            found, noun = self._by_name.get(logical_id, []), "resource"
        if len(found) == 1 or (found and field in _MEANT):
            return found[0]
        why = "several resources have" if found else f"no {noun} of the project has"
        message = f'"{path}" refers to {format_value(logical_id)}, and {why} this logicalId.'
        raise ResourceError((ResourceProblem(resource=owner, message=message, keys=(path,)),))

    def resolve(self, owner: Resource, find: Find) -> dict[str, Any]:
        """A payload with what stands in the place of each `{"ref": …}`.

        Raises:
            ResourceError: a reference leads nowhere.
        """

        def walk(value: Any, field: str, path: str) -> Any:
            if isinstance(value, Mapping):
                if value.keys() == {"ref"} and isinstance(value["ref"], str):
                    return find(field, self.find(owner, field, value["ref"], path))
                return {
                    name: walk(
                        item,
                        field if name == "id" else name,
                        f"{path}.{name}" if path else name,
                    )
                    for name, item in value.items()
                }
            if isinstance(value, list):
                return [walk(item, field, f"{path}[{order}]") for order, item in enumerate(value)]
            return value

        whole: dict[str, Any] = walk(owner.payload, "", "")
        return whole


def fold(resources: Sequence[Resource], shared_files: Sequence[object]) -> list[Resource]:
    """Put what is part of other resources into these.

    Raises:
        ResourceError: it does not fit there.
    """
    references = References(resources)
    assigned = _collect_assignments(resources, references)
    components = _collect_components(resources, references)
    incidents = list(_read_rules(resources, references))
    tags = {one.logical_id: _tags(one) for one in resources if one.type == GROUP}

    def folded(one: Resource) -> Resource:
        payload = dict(one.payload)
        if one.type in (CHECK, GROUP) and one.key in assigned:
            own = payload.get("privateLocations") or []
            payload["privateLocations"] = [*own, *assigned[one.key]]
        if one.type == CHECK:
            payload |= _read_dependencies(one, shared_files)
            if not payload.get("triggerIncident"):
                payload |= _find_incident(one, incidents, tags)
        if one.type == COMPONENT and one.is_member:
            # Where it stands is its page's.
            payload = {name: payload[name] for name in ("type", "name") if name in payload}
        if one.type == PAGE and one.is_member:
            payload["cards"] = _build_cards(payload, components.get(one.logical_id))
        return replace(one, payload=payload)

    return [folded(one) for one in resources]


def _collect_assignments(
    resources: Iterable[Resource], references: References
) -> Mapping[Key, list[dict[str, str]]]:
    """The locations that are assigned to checks and groups, as references."""
    found: dict[Key, list[dict[str, str]]] = defaultdict(list)
    for one in resources:
        if one.type in (CHECK_ASSIGNMENT, GROUP_ASSIGNMENT):
            field = "checkId" if one.type == CHECK_ASSIGNMENT else "groupId"
            owner = _require_ref(one, field, references)
            location = _require_ref(one, "privateLocationId", references)
            found[owner.key].append({"ref": location.logical_id})
    return found


def _require_ref(one: Resource, field: str, references: References) -> Resource:
    value = one.payload.get(field)
    if not (isinstance(value, Mapping) and isinstance(value.get("ref"), str)):
        message = f'"{field}" must be a reference, as in {{"ref": "my-logical-id"}}.'
        raise ResourceError((ResourceProblem(resource=one, message=message, keys=(field,)),))
    return references.find(one, field, value["ref"], field)


def _read_dependencies(one: Resource, shared_files: Sequence[object]) -> dict[str, Any]:
    """Numbers of shared files as the files."""
    sent = one.payload.get("dependencies")
    if not isinstance(sent, list):
        return {}
    files: list[object] = []
    for order, item in enumerate(sent):
        if isinstance(item, bool) or not isinstance(item, int):
            files.append(item)
        elif 0 <= item < len(shared_files):
            files.append(shared_files[item])
        else:
            path = f"dependencies[{order}]"
            message = f'"{path}" is {item}, and there are {len(shared_files)} shared files.'
            raise ResourceError((ResourceProblem(resource=one, message=message, keys=(path,)),))
    return {"dependencies": files}


def _collect_components(
    resources: Iterable[Resource], references: References
) -> Mapping[str, list[Resource]]:
    """The components of each page, in their order; by the page's logical id."""
    found: dict[str, list[Resource]] = defaultdict(list)
    for one in resources:
        if one.type == COMPONENT and one.is_member:
            page = _require_ref(one, "statusPageId", references)
            if not page.is_member:
                message = '"statusPageId" refers to a page that is not a member of the project.'
                keys = ("statusPageId",)
                raise ResourceError((ResourceProblem(resource=one, message=message, keys=keys),))
            found[page.logical_id].append(one)
    for components in found.values():
        components.sort(key=_position)
    return found


def _position(component: Resource) -> tuple[float, int]:
    place = component.payload.get("displayOrder")
    return (place if isinstance(place, int | float) else 0, component.order)


def is_card(one: Resource) -> bool:
    """Whether a component is a group of others, which is a card of its page."""
    return one.type == COMPONENT and one.payload.get("type") == "GROUP"


def _build_cards(
    payload: Mapping[str, Any], components: Sequence[Resource] | None
) -> list[dict[str, Any]]:
    """The cards of a page, with references to services."""
    if components is None:
        return [_read_card(card) for card in payload.get("cards") or []]
    cards: dict[str | None, dict[str, Any]] = {}
    for one in components:
        if is_card(one):
            cards[one.logical_id] = {"name": one.payload.get("name"), "services": []}
        elif one.payload.get("parentId") is None:
            cards.setdefault(None, {"name": _UNGROUPED, "services": []})
    for one in components:
        parent = one.payload.get("parentId")
        card = cards.get(parent["ref"] if isinstance(parent, Mapping) else None)
        if not is_card(one) and not one.payload.get("hidden") and card is not None:
            card["services"].append({"id": {"ref": one.logical_id}})
    return list(cards.values())


def _read_card(card: Any) -> Any:
    """The command line sends a service as a reference, and the API takes its id."""
    if not isinstance(card, Mapping) or not isinstance(card.get("services"), list):
        return card
    services = [
        {"id": one} if isinstance(one, Mapping) and "ref" in one else one
        for one in card["services"]
    ]
    return {**card, "services": services}


def _tags(one: Resource) -> frozenset[str]:
    sent = one.payload.get("tags")
    return (
        frozenset(tag for tag in sent if isinstance(tag, str))
        if isinstance(sent, list)
        else frozenset()
    )


def _read_rules(
    resources: Iterable[Resource], references: References
) -> Iterator[tuple[frozenset[str], Mapping[str, Any]]]:
    """The tags of each rule that is on, and the incident that its checks open."""
    for one in resources:
        if one.type != RULE:
            continue
        touched = one.payload.get("components")
        if (
            not isinstance(touched, list)
            or len(touched) != 1
            or not isinstance(touched[0], Mapping)
        ):
            message = (
                "an incident that a check opens touches one service here;"
                " give the rule one component, or write a rule for each."
            )
            raise ResourceError(
                (ResourceProblem(resource=one, message=message, keys=("components",)),)
            )
        component = _require_ref(replace(one, payload=touched[0]), "componentId", references)
        if is_card(component):
            message = "an incident touches a service and no group; name a SERVICE component."
            raise ResourceError(
                (ResourceProblem(resource=one, message=message, keys=("components",)),)
            )
        incident = {
            "serviceId": {"ref": component.logical_id},
            "severity": _SEVERITIES.get(str(touched[0].get("targetImpact")), "MAJOR"),
            "name": one.payload.get("name"),
            "description": one.payload.get("firstUpdate"),
            "notifySubscribers": one.payload.get("notifySubscribers", True),
        }
        if one.payload.get("enabled", True):
            yield _tags(one), incident


def _find_incident(
    check: Resource,
    incidents: Iterable[tuple[frozenset[str], Mapping[str, Any]]],
    group_tags: Mapping[str, frozenset[str]],
) -> dict[str, Any]:
    """What the first rule says that has one of the tags of a check or of its group."""
    group = check.payload.get("groupId")
    inherited = (
        group_tags.get(group["ref"]) if isinstance(group, Mapping) and "ref" in group else None
    )
    tags = _tags(check) | (inherited or frozenset())
    wanted = (incident for wanted, incident in incidents if wanted & tags)
    found = next(wanted, None)
    return {} if found is None else {"triggerIncident": found}
