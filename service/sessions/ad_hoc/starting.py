"""Starts and cancels test sessions; each is part of the caller's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from sqlalchemy import Connection

from contract.checks import CheckType
from contract.job import RunSource
from service.checks import actions as checks
from service.checks.model import UnstoredCheck
from service.checks.unstored import RunTerms, prepare_copy, prepare_unstored
from service.db.ids import new_id
from service.groups.unstored_groups import prepare_group
from service.http.errors import ForbiddenError, InvalidError, NotFoundError
from service.jobs import actions as jobs
from service.jobs.model import NewRun
from service.locations import actions as locations
from service.sessions import actions, store
from service.sessions.ad_hoc.schemas import (
    MOST_JOBS,
    AdHocRunWrite,
    AdHocTriggerWrite,
    RunLocationWrite,
    SessionFields,
    unwrap,
)
from service.sessions.model import (
    Session,
    SessionStatus,
    TestMember,
    TestSession,
    TestStatus,
)
from service.sessions.rules import matches_tags
from service.variables.schemas import EnvironmentVariable
from service.vault.encryption import Scope

_NO_MATCH: Final = "ERR_NO_MATCHING_CHECKS"
_NOT_RUN: Final = "A heartbeat is never run on demand: it waits for pings."


@dataclass(frozen=True, slots=True)
class StartedTests:
    """A test session that has just begun."""

    test: TestSession
    sessions: Sequence[Session]
    """Those of its checks, in the order of the request."""

    @property
    def sequence_ids(self) -> dict[str, str]:
        """The session of each check by what the client calls it."""
        return {one.test.logical_id: one.id for one in self.sessions if one.test}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A check of a session that is to start."""

    check: UnstoredCheck
    logical_id: str
    run_id: str | None = None
    tested_check_id: str | None = None
    retry_strategy: Mapping[str, Any] | None = None


def start(connection: Connection, scope: Scope, body: AdHocRunWrite) -> StartedTests:
    """Queue the runs of checks that are not stored.

    Raises:
        NotFoundError: there is no such check as the one whose values are used.
        InvalidError: a check names a location, group, snippet or bundle that is not there, or
            waits for pings; or two checks have one name.
    """
    slug = _find_slug(connection, scope, body.run_location)
    parts, suites = [], set[str | None]()
    for order, job in enumerate(body.check_run_jobs):
        fields, check = unwrap(job)
        field = f"checkRunJobs[{order}]"
        if check.kind is CheckType.HEARTBEAT:
            raise InvalidError(_NOT_RUN, keys=(f"{field}.checkType",))
        group = prepare_group(scope, fields.group) if fields.group else None
        source, retries = fields.source_info, fields.test_retry_strategy
        terms = RunTerms(
            slug=slug,
            group=group,
            like=body.hidden_values_of,
            updates_snapshots=source is not None and source.update_snapshots,
        )
        try:
            prepared = prepare_unstored(connection, scope, check, terms)
        except InvalidError as problem:
            raise _name_in_body(problem, field) from problem
        suites.add(source.check_run_suite_id if source else None)
        parts.append(
            _Part(
                check=prepared,
                logical_id=fields.logical_id or str(order),
                run_id=source.check_run_id if source else None,
                retry_strategy=retries.model_dump(by_alias=True) if retries else None,
            )
        )
    _require_one_suite(suites)
    _require_own_names(parts)
    return _start(connection, scope, body, parts, suite_id=suites.pop())


def trigger(connection: Connection, scope: Scope, body: AdHocTriggerWrite) -> StartedTests:
    """Queue runs of copies of stored checks: what they bring counts for no stored check.

    Raises:
        ForbiddenError: nothing matches, as the established service answers it.
        InvalidError: there is no such location, a check cannot run any more, or too many match.
    """
    place = body.run_location
    slug = _find_slug(connection, scope, place) if place else None
    found = checks.find_runnable(
        connection,
        scope.account_id,
        check_ids=None if body.check_id is None else frozenset(body.check_id),
    )
    tags = body.target_tags
    meant = [
        one
        for one in found
        if one.type is not CheckType.HEARTBEAT and (not tags or matches_tags(one.tags, tags))
    ]
    if not meant:
        raise ForbiddenError("No matching checks were found.", facts={"errorCode": _NO_MATCH})
    if len(meant) > MOST_JOBS:
        raise InvalidError(
            f"{len(meant)} checks match, and a test session runs {MOST_JOBS} at most; choose fewer"
            " by their tags or ids.",
            keys=("targetTags", "checkId"),
        )
    extra = [
        EnvironmentVariable.model_validate(one.model_dump())
        for one in body.environment_variables or ()
    ]
    terms, retries = RunTerms(slug=slug, variables=extra), body.test_retry_strategy
    parts = [
        _Part(
            check=prepare_copy(connection, scope, one.id, terms),
            logical_id=one.id,
            tested_check_id=one.id,
            retry_strategy=retries.model_dump(by_alias=True) if retries else None,
        )
        for one in meant
    ]
    return _start(connection, scope, body, parts, suite_id=body.check_run_suite_id)


def run_elsewhere(
    connection: Connection, scope: Scope, check_ids: Sequence[str], terms: RunTerms
) -> StartedTests:
    """Queue runs of copies of these checks on other terms; no stored check has their results.

    Raises:
        InvalidError: there is no such location, a check cannot run any more, or they are too many.
    """
    if len(check_ids) > MOST_JOBS:
        raise InvalidError(
            f"These are {len(check_ids)} checks, and a test session runs {MOST_JOBS} at most; use"
            " the links of smaller groups, or leave out environmentUrl.",
            keys=("environmentUrl",),
            source="query",
        )
    known = locations.list_slugs(connection, scope.account_id).values()
    if terms.slug is not None and terms.slug not in known:
        raise InvalidError(
            f'"runLocation" is no location of this account; use {", ".join(known)}.',
            keys=("runLocation",),
            source="query",
        )
    parts = [
        _Part(
            check=prepare_copy(connection, scope, one, terms),
            logical_id=one,
            tested_check_id=one,
        )
        for one in check_ids
    ]
    return _start(connection, scope, SessionFields(), parts, suite_id=None)


def cancel(
    connection: Connection, scope: Scope, test_id: str, *, sequence_id: str | None
) -> TestSession:
    """End a test session, or one of its checks: what waits goes, what runs loses its lease.

    Raises:
        NotFoundError: the account has no such session, or the session no such check.
        ForbiddenError: it has ended.
    """
    test = actions.find_test(connection, scope.account_id, test_id)
    members = store.list_members(connection, test.id)
    meant = [one for one in members if sequence_id in (None, one.id)]
    if not meant:
        raise NotFoundError(f"There is no run {sequence_id} in this test session.")
    going_on = [one for one in meant if one.stopped_ms is None]
    if not going_on:
        raise ForbiddenError("It has ended, and cannot be cancelled any more.")
    for session in going_on:
        jobs.drop_jobs(connection, session.check_id)
        actions.cancel(connection, session, now_ms=scope.now_ms)
    return actions.find_test(connection, scope.account_id, test_id)


def _start(
    connection: Connection,
    scope: Scope,
    body: SessionFields,
    parts: Sequence[_Part],
    *,
    suite_id: str | None,
) -> StartedTests:
    test = TestSession(
        id=new_id(scope.now_ms),
        account_id=scope.account_id,
        name=body.name or parts[0].check.name,
        status=TestStatus.RUNNING,
        checks=len(parts),
        pending=len(parts),
        failed=0,
        started_ms=scope.now_ms,
        stopped_ms=None,
        is_recorded=body.should_record,
        suite_id=suite_id,
        metadata=body.metadata,
        streams_logs=body.prints_logs,
    )
    slugs = locations.list_slugs(connection, scope.account_id)
    members = [
        (_build_session(test, part, slugs, refresh_cache=body.refresh_cache), part.check)
        for part in parts
    ]
    store.insert_test(connection, test, members)
    jobs.add(connection, list(chain.from_iterable(_list_runs(test, *one) for one in members)))
    return StartedTests(test, [session for session, _ in members])


def _build_session(
    test: TestSession, part: _Part, slugs: Mapping[str, str], *, refresh_cache: bool
) -> Session:
    session_id, check = new_id(test.started_ms), part.check
    return Session(
        id=session_id,
        check_id=check.id,
        check_type=check.type,
        name=check.name,
        locations=tuple(slugs[one] for one in check.location_ids),
        status=SessionStatus.STARTED,
        pending=len(check.location_ids),
        started_ms=test.started_ms,
        stopped_ms=None,
        refresh_cache=refresh_cache,
        is_test=True,
        test=TestMember(
            test_session_id=test.id,
            logical_id=part.logical_id,
            run_id=part.run_id or session_id,
            tested_check_id=part.tested_check_id,
            retry_strategy=part.retry_strategy,
        ),
    )


def _list_runs(test: TestSession, session: Session, check: UnstoredCheck) -> list[NewRun]:
    wanted = jobs.WantedRuns(
        check_id=check.id,
        location_ids=check.location_ids,
        source=RunSource.TEST_RECORD if test.is_recorded else RunSource.TEST_NO_RECORD,
        session_id=session.id,
    )
    return jobs.runs_of(wanted, check, now_ms=test.started_ms)


def _find_slug(connection: Connection, scope: Scope, place: RunLocationWrite) -> str:
    """The slug of the location that was asked for.

    Raises:
        InvalidError: the account has none like it; says which there are.
    """
    known = locations.list_ids_by_slug(connection, scope.account_id)
    if place.type == "PUBLIC":
        region = place.region or ""
        if slug := scope.regions.find_slug(region, known):
            return slug
        raise InvalidError(
            f'Nothing runs at "runLocation.region" {region}:'
            f" {scope.regions.explain(region, known)}.",
            keys=("runLocation.region",),
        )
    slugs = {location_id: slug for slug, location_id in known.items()}
    slug = slugs.get(place.id, place.slug_name) if place.id else place.slug_name
    if slug in known:
        return slug
    field = "slugName" if place.slug_name or not place.id else "id"
    raise InvalidError(
        f'"runLocation.{field}" names no location of this account; use'
        f" {' or '.join(known) or 'one that you create first'}.",
        keys=(f"runLocation.{field}",),
    )


def _require_one_suite(suites: set[str | None]) -> None:
    if len(suites) > 1:
        raise InvalidError(
            '"checkRunJobs" have different values of sourceInfo.checkRunSuiteId; use the same one'
            " for all runs of a session.",
            keys=("checkRunJobs",),
        )


def _require_own_names(parts: Sequence[_Part]) -> None:
    seen: set[str] = set()
    for order, part in enumerate(parts):
        if part.logical_id in seen:
            field = f"checkRunJobs[{order}].logicalId"
            raise InvalidError(
                f'"{field}" is that of an earlier check too; use each one once.', keys=(field,)
            )
        seen.add(part.logical_id)


def _name_in_body(problem: InvalidError, field: str) -> InvalidError:
    """A problem of a check, of which this body has it in a field."""
    message = problem.message
    for key in problem.keys:
        message = message.replace(f'"{key}"', f'"{field}.{key}"')
    return InvalidError(message, keys=tuple(f"{field}.{key}" for key in problem.keys))
