"""`/v1/checks/{type}`: set checks up."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.model import Caller
from service.checks import changes
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
from service.checks.changes import Scope
from service.checks.model import CheckRow
from service.checks.views import (
    ApiCheckShown,
    BrowserCheckShown,
    DnsCheckShown,
    HeartbeatCheckShown,
    IcmpCheckShown,
    MultiStepCheckShown,
    PlaywrightCheckShown,
    TcpCheckShown,
    UrlCheckShown,
    shown,
)
from service.http.auth import CallerDep
from service.http.backend import Backend, BackendDep
from service.http.ignored import HEADER, ignored_header
from service.http.routes import ONE, CheckId, answers, json

router = APIRouter(prefix="/v1/checks", tags=["checks"])


class _Writing:
    """A request that sets up a check: who sends it, and where it goes."""

    def __init__(
        self,
        request: Request,
        caller: CallerDep,
        backend: BackendDep,
        *,
        auto_assign_alerts: Annotated[
            bool,
            Query(
                alias="autoAssignAlerts",
                description="Subscribe the check to all alert channels. There are none yet.",
            ),
        ] = True,
    ) -> None:
        self._caller: Caller = caller
        self._backend: Backend = backend
        self._request = request
        self.auto_assign_alerts = auto_assign_alerts

    async def create(self, check: AnyCheckWrite) -> Response:
        row = await self._backend.database.write(
            lambda connection: changes.create(connection, self._scope(connection), check)
        )
        return await self._answer(row, check, status=201)

    async def replace(self, check_id: str, check: AnyCheckWrite) -> Response:
        row = await self._backend.database.write(
            lambda connection: changes.replace(connection, self._scope(connection), check_id, check)
        )
        return await self._answer(row, check, status=200)

    async def _answer(self, row: CheckRow, check: AnyCheckWrite, *, status: int) -> Response:
        answer = json(shown(row, base_url=self._backend.base_url(self._request)), status=status)
        answer.headers.update(ignored_header(await self._request.json(), check))
        return answer

    def _scope(self, connection: Any) -> Scope:
        return Scope(self._caller.account_id, self._backend.clock.now_ms(connection))


WritingDep = Annotated[_Writing, Depends(_Writing)]
_CREATED = f"The check, every default filled in; the header {HEADER} names unknown fields."


@router.post("/api", status_code=201, responses=answers(201, ApiCheckShown, _CREATED))
async def create_api_check(body: Annotated[ApiCheckWrite, Body()], writing: WritingDep) -> Response:
    """Create an API check."""
    return await writing.create(body)


@router.put("/api" + ONE, responses=answers(200, ApiCheckShown, _CREATED, 404))
async def replace_api_check(
    check_id: CheckId, body: Annotated[ApiCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Set an API check up anew; what is left out takes its default."""
    return await writing.replace(check_id, body)


@router.post("/url", status_code=201, responses=answers(201, UrlCheckShown, _CREATED))
async def create_url_check(body: Annotated[UrlCheckWrite, Body()], writing: WritingDep) -> Response:
    """Create a URL monitor."""
    return await writing.create(body)


@router.put("/url" + ONE, responses=answers(200, UrlCheckShown, _CREATED, 404))
async def replace_url_check(
    check_id: CheckId, body: Annotated[UrlCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Set a URL monitor up anew; what is left out takes its default."""
    return await writing.replace(check_id, body)


@router.post("/tcp", status_code=201, responses=answers(201, TcpCheckShown, _CREATED))
async def create_tcp_check(body: Annotated[TcpCheckWrite, Body()], writing: WritingDep) -> Response:
    """Create a TCP monitor."""
    return await writing.create(body)


@router.put("/tcp" + ONE, responses=answers(200, TcpCheckShown, _CREATED, 404))
async def replace_tcp_check(
    check_id: CheckId, body: Annotated[TcpCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Set a TCP monitor up anew; what is left out takes its default."""
    return await writing.replace(check_id, body)


@router.post("/dns", status_code=201, responses=answers(201, DnsCheckShown, _CREATED))
async def create_dns_check(body: Annotated[DnsCheckWrite, Body()], writing: WritingDep) -> Response:
    """Create a DNS monitor."""
    return await writing.create(body)


@router.put("/dns" + ONE, responses=answers(200, DnsCheckShown, _CREATED, 404))
async def replace_dns_check(
    check_id: CheckId, body: Annotated[DnsCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Set a DNS monitor up anew; what is left out takes its default."""
    return await writing.replace(check_id, body)


@router.post("/icmp", status_code=201, responses=answers(201, IcmpCheckShown, _CREATED))
async def create_icmp_check(
    body: Annotated[IcmpCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Create an ICMP monitor."""
    return await writing.create(body)


@router.put("/icmp" + ONE, responses=answers(200, IcmpCheckShown, _CREATED, 404))
async def replace_icmp_check(
    check_id: CheckId, body: Annotated[IcmpCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Set an ICMP monitor up anew; what is left out takes its default."""
    return await writing.replace(check_id, body)


@router.post(
    "/heartbeat", status_code=201, responses=answers(201, HeartbeatCheckShown, _CREATED, 409)
)
async def create_heartbeat_check(
    body: Annotated[HeartbeatCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Create a heartbeat monitor."""
    return await writing.create(body)


@router.put("/heartbeat" + ONE, responses=answers(200, HeartbeatCheckShown, _CREATED, 404, 409))
async def replace_heartbeat_check(
    check_id: CheckId, body: Annotated[HeartbeatCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Set a heartbeat monitor up anew; what is left out takes its default."""
    return await writing.replace(check_id, body)


@router.post("/browser", status_code=201, responses=answers(201, BrowserCheckShown, _CREATED))
async def create_browser_check(
    body: Annotated[BrowserCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Create a browser check."""
    return await writing.create(body)


@router.put("/browser" + ONE, responses=answers(200, BrowserCheckShown, _CREATED, 404))
async def replace_browser_check(
    check_id: CheckId, body: Annotated[BrowserCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Set a browser check up anew; what is left out takes its default."""
    return await writing.replace(check_id, body)


@router.post("/multistep", status_code=201, responses=answers(201, MultiStepCheckShown, _CREATED))
async def create_multi_step_check(
    body: Annotated[MultiStepCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Create a multi-step check."""
    return await writing.create(body)


@router.put("/multistep" + ONE, responses=answers(200, MultiStepCheckShown, _CREATED, 404))
async def replace_multi_step_check(
    check_id: CheckId, body: Annotated[MultiStepCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Set a multi-step check up anew; what is left out takes its default."""
    return await writing.replace(check_id, body)


@router.post("/playwright", status_code=201, responses=answers(201, PlaywrightCheckShown, _CREATED))
async def create_playwright_suite(
    body: Annotated[PlaywrightCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Create a Playwright suite."""
    return await writing.create(body)


@router.put("/playwright" + ONE, responses=answers(200, PlaywrightCheckShown, _CREATED, 404))
async def replace_playwright_suite(
    check_id: CheckId, body: Annotated[PlaywrightCheckWrite, Body()], writing: WritingDep
) -> Response:
    """Set a Playwright suite up anew; what is left out takes its default."""
    return await writing.replace(check_id, body)
