"""`/test-sessions/{id}`: the checks of a test session, and how each of them went."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import BaseRoute

from contract.checks import CheckType
from service.results.model import ResultType
from service.sessions.model import TestState, TestStatus
from service.sessions.watching import TestWatch
from service.web.check.sections import RunShown, show_run
from service.web.page_routing import Pages
from service.web.states import State
from service.web.visit import Visit

_STATES: Final = {
    TestStatus.RUNNING: State.RUNNING,
    TestStatus.PASSED: State.PASSING,
    TestStatus.FAILED: State.FAILING,
    TestStatus.CANCELLED: State.UNKNOWN,
}


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The page, and where the established command line looks for it."""
    return (
        pages.show("/test-sessions/{session}", _show),
        pages.show("/accounts/{account}/test-sessions/{session}", _go),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedCheck:
    """How a check of a test session went at one of its locations."""

    name: str
    location: str
    href: str
    run: RunShown | None
    """None: it has not ended."""


async def _show(visit: Visit) -> Response:
    session_id = str(visit.request.path_params["session"])
    seen = await TestWatch(visit.backend, visit.account_id, session_id).read()
    return visit.page(
        "test_session.html",
        test=seen.test,
        state=_STATES[seen.test.status],
        checks=list(_list_checks(seen)),
        is_over=seen.is_over,
        here=f"/test-sessions/{quote(session_id, safe='')}",
    )


async def _go(visit: Visit) -> Response:
    return visit.go(f"/test-sessions/{quote(visit.request.path_params['session'], safe='')}")


def _list_checks(seen: TestState) -> Iterator[TestedCheck]:
    results = {
        session_id: {one.location: one for one in found if one.result_type is ResultType.FINAL}
        for session_id, found in groupby(seen.results, key=lambda one: one.session_id)
    }
    for session in seen.members:
        found = results.get(session.id, {})
        for location in session.locations:
            stored = found.get(location)
            yield TestedCheck(
                name=session.name,
                location=location,
                href=f"/checks/try/{session.id}/at/{quote(location, safe='')}",
                run=show_run(stored, CheckType(session.check_type)) if stored else None,
            )
