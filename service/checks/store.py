"""The SQL of checks."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import (
    JSON,
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from contract.checks import CheckType, Lane
from service.checks.model import (
    CheckFilter,
    CheckLabels,
    CheckName,
    CheckRow,
    CheckTerms,
    CheckToRun,
    ScriptedRow,
    ServiceCheck,
    StatusFilter,
)
from service.db.json_columns import readable_json
from service.db.tables.checks import check_, check_group_tag, check_location, check_state, check_tag
from service.results.model import RunStatus
from service.vault.texts import HIDDEN

COLUMNS: Final = (
    check_.c.id,
    check_.c.account_id,
    check_.c.type,
    check_.c.name,
    check_.c.activated,
    check_.c.doc,
    check_.c.version,
    check_.c.created_ms,
    check_.c.updated_ms,
    check_.c.group_id,
    check_.c.applied,
    check_.c.secrets,
)
SECRETS: Final = check_.c.secrets
NAME_COLUMNS: Final = (check_.c.id, check_.c.type, check_.c.name, check_.c.created_ms)
_DOC: Final = readable_json(check_.c.doc)
_ONE: Final[Select[Any]] = select(*COLUMNS).where(
    check_.c.account_id == bindparam("account_id"), check_.c.id == bindparam("check_id")
)
_NAMES: Final[Select[Any]] = (
    select(*NAME_COLUMNS)
    .where(check_.c.account_id == bindparam("account_id"))
    .order_by(check_.c.created_ms, check_.c.id)
)
_TERMS: Final = select(
    check_.c.account_id,
    check_.c.type,
    check_.c.lane,
    check_.c.name,
    check_.c.activated,
    check_.c.muted,
    check_.c.group_id,
    check_.c.frequency,
    check_.c.frequency_offset,
    check_.c.run_parallel,
    func.coalesce(check_.c.applied, check_.c.doc, type_=JSON).label("doc"),
    check_.c.spec,
).where(check_.c.id == bindparam("check_id"))
_LOCATIONS: Final = (
    select(check_location.c.location_id)
    .where(check_location.c.check_id == bindparam("check_id"))
    .order_by(check_location.c.position)
)
_USERS: Final = (
    select(check_.c.name)
    .join(check_location, check_location.c.check_id == check_.c.id)
    .where(check_location.c.location_id == bindparam("location_id"))
    .order_by(check_.c.name)
    .limit(4)
)
_USES: Final = (
    select(func.count())
    .select_from(check_location)
    .where(check_location.c.location_id == bindparam("location_id"))
)
_IN_USE: Final = (
    # No join: PostgreSQL would read all checks for it.
    select(check_location.c.check_id)
    .where(
        check_location.c.location_id == bindparam("location_id"),
        select(check_.c.activated)
        .where(check_.c.id == check_location.c.check_id)
        .scalar_subquery(),
    )
    .limit(1)
)
_SCRIPTED: Final = select(
    check_.c.id,
    check_.c.account_id,
    check_.c.type,
    check_.c.doc,
    check_.c.group_id,
    check_.c.spec,
).where(
    check_.c.account_id == bindparam("account_id"),
    check_.c.lane == Lane.MAIN.value,
    check_.c.type.in_((CheckType.API.value, CheckType.BROWSER.value, CheckType.MULTI_STEP.value)),
)
_PHASES: Final = or_(
    *(
        _DOC[field].as_integer() == bindparam("snippet_id")
        for field in ("setupSnippetId", "tearDownSnippetId")
    )
)
_NAMED_BY: Final = (
    select(check_.c.name)
    .where(check_.c.account_id == bindparam("account_id"), check_.c.type == "API", _PHASES)
    .order_by(check_.c.name)
)
_BUNDLED: Final = (
    select(check_.c.account_id)
    .join(check_location, check_location.c.check_id == check_.c.id)
    .where(
        check_location.c.location_id == bindparam("location_id"),
        check_.c.type == CheckType.PLAYWRIGHT.value,
        _DOC["codeBundlePath"].as_string() == bindparam("sha256"),
    )
    .limit(1)
)
_BUNDLES: Final = (
    select(_DOC["codeBundlePath"].as_string())
    .where(check_.c.type == CheckType.PLAYWRIGHT.value)
    .distinct()
)
_COMPARED: Final = _DOC["snapshots"].as_string()
_COMPARES: Final = (
    select(check_.c.account_id)
    .join(check_location, check_location.c.check_id == check_.c.id)
    .where(
        check_location.c.location_id == bindparam("location_id"),
        check_.c.type == CheckType.BROWSER.value,
        _COMPARED.contains(bindparam("sha256")),
    )
    .limit(1)
)
_SNAPSHOTS: Final = select(_COMPARED).where(
    check_.c.type == CheckType.BROWSER.value, _COMPARED.like('%"key"%')
)
_STATUSES: Final[dict[StatusFilter, tuple[RunStatus, ...]]] = {
    "passing": (RunStatus.PASSED,),
    "degraded": (RunStatus.DEGRADED,),
    "failing": (RunStatus.FAILED, RunStatus.TIMED_OUT),
}


def find(connection: Connection, account_id: str, check_id: str) -> CheckRow | None:
    """One check. None: the account has none with this id."""
    row = connection.execute(_ONE, {"account_id": account_id, "check_id": check_id}).first()
    return None if row is None else read(row)


def find_matching(
    connection: Connection, account_id: str, wanted: CheckFilter, *, limit: int, offset: int
) -> tuple[CheckRow, ...]:
    """A page of the checks that match, oldest first."""
    query: Select[Any] = (
        select(*COLUMNS)
        .where(check_.c.account_id == account_id, *_build_conditions(wanted))
        .order_by(check_.c.created_ms, check_.c.id)
        .limit(limit)
        .offset(offset)
    )
    return tuple(map(read, connection.execute(query)))


def count_matching(connection: Connection, account_id: str, wanted: CheckFilter) -> int:
    """How many checks match."""
    query = select(func.count()).select_from(check_)
    of_account = query.where(check_.c.account_id == account_id, *_build_conditions(wanted))
    return int(connection.execute(of_account).scalar_one())


def list_names(connection: Connection, account_id: str) -> tuple[CheckName, ...]:
    """All checks, oldest first, without what they hold."""
    return tuple(map(read_name, connection.execute(_NAMES, {"account_id": account_id})))


def insert_check(connection: Connection, row: Mapping[str, Any]) -> None:
    """Store a new check; the mapping holds every column."""
    connection.execute(insert(check_), dict(row))


def update_check(connection: Connection, check_id: str, values: Mapping[str, Any]) -> None:
    """Change a check; its version grows."""
    change = update(check_).where(check_.c.id == check_id)
    connection.execute(change.values(**values, version=check_.c.version + 1))


def delete_check(connection: Connection, check_id: str) -> None:
    """Forget a check and what hangs on it; its results stay until their time is over."""
    for table in (check_tag, check_location, check_state):
        connection.execute(delete(table).where(table.c.check_id == check_id))
    connection.execute(delete(check_).where(check_.c.id == check_id))


def replace_tags(connection: Connection, check_id: str, tags: Sequence[str]) -> None:
    """Make these the check's tags."""
    connection.execute(delete(check_tag).where(check_tag.c.check_id == check_id))
    rows = [{"check_id": check_id, "tag": tag} for tag in dict.fromkeys(tags)]
    if rows:
        connection.execute(insert(check_tag), rows)


def replace_locations(connection: Connection, check_id: str, location_ids: Sequence[str]) -> None:
    """Make these the places where the check runs, in this order."""
    connection.execute(delete(check_location).where(check_location.c.check_id == check_id))
    rows = [
        {"check_id": check_id, "location_id": location_id, "position": position}
        for position, location_id in enumerate(location_ids)
    ]
    if rows:
        connection.execute(insert(check_location), rows)


def find_terms(connection: Connection, check_id: str) -> CheckTerms | None:
    """On what terms a check runs. None: there is no such check."""
    row = connection.execute(_TERMS, {"check_id": check_id}).first()
    if row is None:
        return None
    values = {**row._mapping, "type": CheckType(row.type), "lane": Lane(row.lane)}  # noqa: SLF001 - as in `read`
    return CheckTerms(**values)


def find_types(connection: Connection, check_ids: Iterable[str]) -> dict[str, CheckType]:
    """The type of each of these checks that there is."""
    left, found = iter(check_ids), dict[str, CheckType]()
    while some := list(islice(left, _GROUP)):
        for check_id, kind in connection.execute(_TYPES, {"among": some}):
            found[check_id] = CheckType(kind)
    return found


def find_owners(connection: Connection, check_ids: Iterable[str]) -> dict[str, str]:
    """The account of each of these checks that there is."""
    left, found = iter(check_ids), dict[str, str]()
    while some := list(islice(left, _GROUP)):
        for check_id, account_id in connection.execute(_OWNERS, {"among": some}):
            found[check_id] = account_id
    return found


def find_own_types(
    connection: Connection, account_id: str, check_ids: Sequence[str]
) -> dict[str, CheckType]:
    """The type of each of these checks that the account has."""
    query = _TYPES.where(check_.c.account_id == account_id)
    rows = connection.execute(query, {"among": list(check_ids)})
    return {check_id: CheckType(kind) for check_id, kind in rows}


def find_locations(connection: Connection, check_id: str) -> tuple[str, ...]:
    """The ids of the locations where the check runs, in order."""
    return tuple(connection.execute(_LOCATIONS, {"check_id": check_id}).scalars())


def find_location_users(connection: Connection, location_id: str) -> tuple[int, tuple[str, ...]]:
    """How many checks run at a location, and the names of the first few."""
    values = {"location_id": location_id}
    names = tuple(connection.execute(_USERS, values).scalars())
    return connection.execute(_USES, values).scalar_one(), names


def list_locations_in_use(connection: Connection, location_ids: Iterable[str]) -> set[str]:
    """Those of these locations where any activated check runs."""
    return {
        location_id
        for location_id in location_ids
        if connection.execute(_IN_USE, {"location_id": location_id}).first() is not None
    }


def list_scripted(connection: Connection, account_id: str) -> tuple[ScriptedRow, ...]:
    """The account's checks that may use snippets."""
    rows = connection.execute(_SCRIPTED, {"account_id": account_id})
    return tuple(ScriptedRow(**row._mapping) for row in rows)  # noqa: SLF001 - as in `read`


def find_snippet_users(connection: Connection, account_id: str, snippet_id: int) -> tuple[str, ...]:
    """The names of the checks that have the snippet as a phase."""
    values = {"account_id": account_id, "snippet_id": snippet_id}
    return tuple(connection.execute(_NAMED_BY, values).scalars())


def find_bundle_owner(connection: Connection, location_id: str, sha256: str) -> str | None:
    """Whose bundle or snapshot it is that a check of the location needs. None: none does."""
    values = {"location_id": location_id, "sha256": sha256}
    found: str | None = connection.execute(_BUNDLED, values).scalar_one_or_none()
    return found or connection.execute(_COMPARES, values).scalar_one_or_none()


def list_bundles_in_use(connection: Connection) -> frozenset[str]:
    """The content hashes of all bundles that checks run."""
    return frozenset(connection.execute(_BUNDLES).scalars())


def list_snapshots_in_use(connection: Connection) -> frozenset[str]:
    """The content hashes of all snapshots that checks compare with."""
    listed = connection.execute(_SNAPSHOTS).scalars()
    return frozenset(one["key"] for text in listed for one in json.loads(text))


def read(row: Row[Any]) -> CheckRow:
    """A row of `COLUMNS`."""
    return CheckRow(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented face of a row


def read_name(row: Row[Any]) -> CheckName:
    """A row of `NAME_COLUMNS`."""
    return CheckName(id=row.id, type=CheckType(row.type), name=row.name, created_ms=row.created_ms)


def _build_conditions(wanted: CheckFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.tags:
        found.extend(_has_tag(check_tag.c.tag == tag) for tag in wanted.tags)
    if wanted.check_type:
        found.append(check_.c.type == wanted.check_type)
    if wanted.search:
        found.append(
            or_(
                check_.c.name.icontains(wanted.search, autoescape=True),
                _has_tag(check_tag.c.tag.icontains(wanted.search, autoescape=True)),
            )
        )
    if wanted.url_part:
        url = func.replace(_DOC["request"]["url"].as_string(), f"{HIDDEN}@", "")
        found.append(and_(check_.c.type == "API", url.icontains(wanted.url_part, autoescape=True)))
    if wanted.status:
        found.append(_has_status(_STATUSES[wanted.status]))
    return found


def _has_tag(which: ColumnElement[bool]) -> ColumnElement[bool]:
    return exists().where(check_tag.c.check_id == check_.c.id, which)


def _has_status(statuses: Sequence[RunStatus]) -> ColumnElement[bool]:
    return exists().where(check_state.c.check_id == check_.c.id, check_state.c.status.in_(statuses))


_ORDER: Final = _DOC["groupOrder"].as_float()
_IS_MEMBER: Final = and_(
    check_.c.account_id == bindparam("account_id"), check_.c.group_id == bindparam("of_group")
)
_IN_ORDER: Final = (_ORDER.is_(None), _ORDER, check_.c.created_ms, check_.c.id)
_MEMBERS: Final[Select[Any]] = select(*COLUMNS).where(_IS_MEMBER).order_by(*_IN_ORDER)
_MEMBER_NAMES: Final[Select[Any]] = select(*NAME_COLUMNS).where(_IS_MEMBER).order_by(*_IN_ORDER)
_SPECS_OF_GROUP: Final = select(check_.c.id, check_.c.spec).where(
    check_.c.group_id == bindparam("of_group")
)


def list_members(
    connection: Connection,
    account_id: str,
    group_id: int,
    *,
    limit: int | None = None,
    offset: int = 0,
) -> tuple[CheckRow, ...]:
    """The checks of a group, in the order in which the group runs them."""
    query = _MEMBERS if limit is None else _MEMBERS.limit(limit).offset(offset)
    rows = connection.execute(query, {"account_id": account_id, "of_group": group_id})
    return tuple(map(read, rows))


def list_member_names(
    connection: Connection, account_id: str, group_id: int
) -> tuple[CheckName, ...]:
    """The names of all checks of a group, in its order."""
    rows = connection.execute(_MEMBER_NAMES, {"account_id": account_id, "of_group": group_id})
    return tuple(map(read_name, rows))


def find_specs(connection: Connection, group_id: int) -> dict[str, bytes]:
    """What runs of a group's checks need, by check."""
    rows = connection.execute(_SPECS_OF_GROUP, {"of_group": group_id})
    return {row.id: row.spec for row in rows}


def update_resolved(connection: Connection, effects: Mapping[str, Mapping[str, Any]]) -> None:
    """Change what checks come to, by check, without changing the checks; all the same columns."""
    rows = [{**values, "changed": check_id} for check_id, values in effects.items()]
    if rows:
        connection.execute(update(check_).where(check_.c.id == bindparam("changed")), rows)


_APPLIED: Final = func.coalesce(readable_json(check_.c.applied), _DOC, type_=JSON)
_TAGS: Final = _APPLIED["tags"]
_TO_RUN: Final[Select[Any]] = (
    select(check_.c.id, check_.c.type, check_.c.lane, check_.c.name, _TAGS.label("tags"))
    .where(check_.c.account_id == bindparam("account_id"), check_.c.activated)
    .order_by(check_.c.created_ms, check_.c.id)
)
_AMONG: Final[BindParameter[Any]] = bindparam("among", expanding=True)
_TYPES: Final = select(check_.c.id, check_.c.type).where(check_.c.id.in_(_AMONG))
_OWNERS: Final = select(check_.c.id, check_.c.account_id).where(check_.c.id.in_(_AMONG))
_OF_IDS: Final = _TO_RUN.where(check_.c.id.in_(_AMONG))
_TAGGED: Final = _TO_RUN.where(
    or_(
        check_.c.id.in_(select(check_tag.c.check_id).where(check_tag.c.tag.in_(_AMONG))),
        check_.c.group_id.in_(
            select(check_group_tag.c.group_id).where(check_group_tag.c.tag.in_(_AMONG))
        ),
    )
)
_RUN_LOCATIONS: Final = (
    select(check_location.c.check_id, check_location.c.location_id)
    .where(check_location.c.check_id.in_(_AMONG))
    .order_by(check_location.c.check_id, check_location.c.position)
)
_GROUP: Final = 500
"""Checks in one statement."""


_LABELS: Final[Select[Any]] = (
    select(
        check_.c.id,
        check_.c.type,
        check_.c.name,
        check_.c.activated,
        check_.c.muted,
        check_.c.group_id,
        _TAGS.label("tags"),
        check_state.c.status,
        case((check_.c.type == CheckType.HEARTBEAT.value, check_.c.spec)).label("heartbeat_spec"),
    )
    .select_from(check_.outerjoin(check_state, check_state.c.check_id == check_.c.id))
    .where(check_.c.account_id == bindparam("account_id"))
    .order_by(check_.c.created_ms, check_.c.id)
)


def list_labels(connection: Connection, account_id: str) -> tuple[CheckLabels, ...]:
    """All checks of the account, oldest first, with their tags."""
    return tuple(map(_read_labels, connection.execute(_LABELS, {"account_id": account_id})))


_TRIGGER: Final = _APPLIED["triggerIncident"]
_OF_SERVICES: Final[Select[Any]] = (
    select(
        check_.c.id,
        check_.c.name,
        check_.c.activated,
        check_.c.muted,
        _TRIGGER["serviceId"].as_string().label("service_id"),
        _TRIGGER["severity"].as_string().label("severity"),
        _TAGS.label("tags"),
    )
    .where(
        check_.c.account_id == bindparam("account_id"),
        _TRIGGER["serviceId"].as_string().in_(bindparam("services", expanding=True)),
    )
    .order_by(check_.c.created_ms, check_.c.id)
)


def list_of_services(
    connection: Connection, account_id: str, service_ids: Sequence[str]
) -> tuple[ServiceCheck, ...]:
    """The checks whose failures open incidents of these services, oldest first."""
    values = {"account_id": account_id, "services": list(service_ids)}
    rows = connection.execute(_OF_SERVICES, values)
    return tuple(
        ServiceCheck(**{**row._mapping, "tags": tuple(row.tags or ())})  # noqa: SLF001 - as in `read`
        for row in rows
    )


def _read_labels(row: Row[Any]) -> CheckLabels:
    return CheckLabels(
        id=row.id,
        type=CheckType(row.type),
        name=row.name,
        activated=row.activated,
        muted=row.muted,
        group_id=row.group_id,
        tags=tuple(row.tags or ()),
        status=row.status,
        heartbeat_spec=row.heartbeat_spec,
    )


def find_runnable(
    connection: Connection,
    account_id: str,
    *,
    check_ids: Collection[str] | None,
    any_of_tags: Collection[str] | None,
) -> Iterator[CheckToRun]:
    """Activated checks, oldest first: those with these ids or, of any ids, with one of these tags.

    None: any.
    """
    if check_ids is not None:
        query, among = _OF_IDS, {"among": list(check_ids)}
    elif any_of_tags is not None:
        query, among = _TAGGED, {"among": list(any_of_tags)}
    else:
        query, among = _TO_RUN, {}
    return map(_read_runnable, connection.execute(query, {"account_id": account_id, **among}))


def find_locations_of_many(
    connection: Connection, check_ids: Iterable[str]
) -> dict[str, list[str]]:
    """The ids of the locations where each of these checks runs, in order."""
    left, found = iter(check_ids), dict[str, list[str]]()
    while some := list(islice(left, _GROUP)):
        for check_id, location_id in connection.execute(_RUN_LOCATIONS, {"among": some}):
            found.setdefault(check_id, []).append(location_id)
    return found


def _read_runnable(row: Row[Any]) -> CheckToRun:
    return CheckToRun(
        id=row.id,
        type=CheckType(row.type),
        lane=Lane(row.lane),
        name=row.name,
        tags=frozenset(row.tags or ()),
    )
