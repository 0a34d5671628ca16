"""`/v1/checks/{type}`: set checks up."""

from typing import Annotated

from fastapi import Body, Depends, Query
from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions, changes
from service.checks.bodies import (
    ApiCheckWrite,
    DnsCheckWrite,
    HeartbeatCheckWrite,
    IcmpCheckWrite,
    TcpCheckWrite,
    UrlCheckWrite,
)
from service.checks.script_bodies import (
    AgenticCheckWrite,
    BrowserCheckWrite,
    MultiStepCheckWrite,
    PlaywrightCheckWrite,
)
from service.checks.typed_bodies import AnyCheckWrite, TypedCheck
from service.checks.views import (
    AgenticCheckShown,
    AnyCheckShown,
    ApiCheckShown,
    BrowserCheckShown,
    DnsCheckShown,
    HeartbeatCheckShown,
    IcmpCheckShown,
    MultiStepCheckShown,
    PlaywrightCheckShown,
    TcpCheckShown,
    UrlCheckShown,
    compared,
    shown,
)
from service.http.changing import (
    Changed,
    ChangeDep,
    Changing,
    CreateDep,
    Creating,
    changed_fields,
    sent_fields,
)
from service.http.ignored import HEADER, ignored_header
from service.http.operations import keyed_operations
from service.http.routes import ONE, CheckId, answers, json
from service.variables.views import Sight
from service.vault.scope import Scope

router = keyed_operations("Checks", prefix="/v1/checks")


_AutoAssign = Annotated[
    bool,
    Query(
        alias="autoAssignAlerts",
        description="Subscribe the check to all alert channels. There are none yet.",
    ),
]


class _Creating:
    """A request that sets up a check."""

    def __init__(self, creating: CreateDep, *, auto_assign_alerts: _AutoAssign = True) -> None:
        self._creating: Creating = creating
        self.auto_assign_alerts = auto_assign_alerts

    async def create(self, check: AnyCheckWrite) -> Response:
        ignored = ignored_header(await self._creating.request.json(), check)

        def change(connection: Connection, now_ms: int) -> Changed:
            scope = Scope(self._creating.account_id, now_ms, self._creating.vault)
            row = changes.create(connection, scope, check)
            sight = Sight(scope.vault, may_write=True)
            body = shown(row, base_url=self._creating.base_url, sight=sight)
            answer = json(body, status=201, headers=ignored)
            return Changed(answer=answer, resource_id=row.id, fields=sent_fields(check))

        return await self._creating.make(change)


class _Replacing:
    """A request that sets a check up anew."""

    def __init__(self, changing: ChangeDep, *, auto_assign_alerts: _AutoAssign = True) -> None:
        self._changing: Changing = changing
        self.auto_assign_alerts = auto_assign_alerts

    async def replace(self, check_id: str, check: AnyCheckWrite) -> Response:
        ignored = ignored_header(await self._changing.request.json(), check)
        base_url = self._changing.base_url

        def change(connection: Connection, now_ms: int) -> Changed:
            scope = Scope(self._changing.account_id, now_ms, self._changing.vault)
            held = actions.find(connection, scope.account_id, check_id)
            (before,) = actions.with_variables(connection, [held])
            seen = compared(before, base_url=base_url, vault=scope.vault)
            row = changes.replace(connection, scope, check_id, check)
            fields = changed_fields(seen, compared(row, base_url=base_url, vault=scope.vault))
            body = shown(row, base_url=base_url, sight=Sight(scope.vault, may_write=True))
            return Changed(answer=json(body, headers=ignored), resource_id=row.id, fields=fields)

        return await self._changing.make(change)


CreatingDep = Annotated[_Creating, Depends(_Creating)]
ReplacingDep = Annotated[_Replacing, Depends(_Replacing)]
_CREATED = f"The check, every default filled in; the header {HEADER} names unknown fields."


@router.post("", status_code=201, responses=answers(201, AnyCheckShown, _CREATED, 409))
async def create_check(body: Annotated[TypedCheck, Body()], creating: CreatingDep) -> Response:
    """Create a check of the type that `checkType` says."""
    return await creating.create(body)


@router.put(ONE, responses=answers(200, AnyCheckShown, _CREATED, 404, 409))
async def replace_check(
    check_id: CheckId, body: Annotated[TypedCheck, Body()], replacing: ReplacingDep
) -> Response:
    """Replace a check; `checkType` says of which type it is, and cannot change."""
    return await replacing.replace(check_id, body)


@router.post("/api", status_code=201, responses=answers(201, ApiCheckShown, _CREATED))
async def create_api_check(
    body: Annotated[ApiCheckWrite, Body()], creating: CreatingDep
) -> Response:
    """Create an API check."""
    return await creating.create(body)


@router.put("/api" + ONE, responses=answers(200, ApiCheckShown, _CREATED, 404))
async def replace_api_check(
    check_id: CheckId, body: Annotated[ApiCheckWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace an API check; fields that are left out take their defaults."""
    return await replacing.replace(check_id, body)


@router.post("/url", status_code=201, responses=answers(201, UrlCheckShown, _CREATED))
async def create_url_check(
    body: Annotated[UrlCheckWrite, Body()], creating: CreatingDep
) -> Response:
    """Create a URL monitor."""
    return await creating.create(body)


@router.put("/url" + ONE, responses=answers(200, UrlCheckShown, _CREATED, 404))
async def replace_url_check(
    check_id: CheckId, body: Annotated[UrlCheckWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace a URL monitor; fields that are left out take their defaults."""
    return await replacing.replace(check_id, body)


@router.post("/tcp", status_code=201, responses=answers(201, TcpCheckShown, _CREATED))
async def create_tcp_check(
    body: Annotated[TcpCheckWrite, Body()], creating: CreatingDep
) -> Response:
    """Create a TCP monitor."""
    return await creating.create(body)


@router.put("/tcp" + ONE, responses=answers(200, TcpCheckShown, _CREATED, 404))
async def replace_tcp_check(
    check_id: CheckId, body: Annotated[TcpCheckWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace a TCP monitor; fields that are left out take their defaults."""
    return await replacing.replace(check_id, body)


@router.post("/dns", status_code=201, responses=answers(201, DnsCheckShown, _CREATED))
async def create_dns_check(
    body: Annotated[DnsCheckWrite, Body()], creating: CreatingDep
) -> Response:
    """Create a DNS monitor."""
    return await creating.create(body)


@router.put("/dns" + ONE, responses=answers(200, DnsCheckShown, _CREATED, 404))
async def replace_dns_check(
    check_id: CheckId, body: Annotated[DnsCheckWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace a DNS monitor; fields that are left out take their defaults."""
    return await replacing.replace(check_id, body)


@router.post("/icmp", status_code=201, responses=answers(201, IcmpCheckShown, _CREATED))
async def create_icmp_check(
    body: Annotated[IcmpCheckWrite, Body()], creating: CreatingDep
) -> Response:
    """Create an ICMP monitor."""
    return await creating.create(body)


@router.put("/icmp" + ONE, responses=answers(200, IcmpCheckShown, _CREATED, 404))
async def replace_icmp_check(
    check_id: CheckId, body: Annotated[IcmpCheckWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace an ICMP monitor; fields that are left out take their defaults."""
    return await replacing.replace(check_id, body)


@router.post(
    "/heartbeat", status_code=201, responses=answers(201, HeartbeatCheckShown, _CREATED, 409)
)
async def create_heartbeat_check(
    body: Annotated[HeartbeatCheckWrite, Body()], creating: CreatingDep
) -> Response:
    """Create a heartbeat monitor."""
    return await creating.create(body)


@router.put("/heartbeat" + ONE, responses=answers(200, HeartbeatCheckShown, _CREATED, 404, 409))
async def replace_heartbeat_check(
    check_id: CheckId, body: Annotated[HeartbeatCheckWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace a heartbeat monitor; fields that are left out take their defaults."""
    return await replacing.replace(check_id, body)


@router.post("/browser", status_code=201, responses=answers(201, BrowserCheckShown, _CREATED))
async def create_browser_check(
    body: Annotated[BrowserCheckWrite, Body()], creating: CreatingDep
) -> Response:
    """Create a browser check."""
    return await creating.create(body)


@router.put("/browser" + ONE, responses=answers(200, BrowserCheckShown, _CREATED, 404))
async def replace_browser_check(
    check_id: CheckId, body: Annotated[BrowserCheckWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace a browser check; fields that are left out take their defaults."""
    return await replacing.replace(check_id, body)


@router.post("/multistep", status_code=201, responses=answers(201, MultiStepCheckShown, _CREATED))
async def create_multi_step_check(
    body: Annotated[MultiStepCheckWrite, Body()], creating: CreatingDep
) -> Response:
    """Create a multi-step check."""
    return await creating.create(body)


@router.put("/multistep" + ONE, responses=answers(200, MultiStepCheckShown, _CREATED, 404))
async def replace_multi_step_check(
    check_id: CheckId, body: Annotated[MultiStepCheckWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace a multi-step check; fields that are left out take their defaults."""
    return await replacing.replace(check_id, body)


@router.post("/playwright", status_code=201, responses=answers(201, PlaywrightCheckShown, _CREATED))
async def create_playwright_suite(
    body: Annotated[PlaywrightCheckWrite, Body()], creating: CreatingDep
) -> Response:
    """Create a Playwright suite."""
    return await creating.create(body)


@router.put("/playwright" + ONE, responses=answers(200, PlaywrightCheckShown, _CREATED, 404))
async def replace_playwright_suite(
    check_id: CheckId, body: Annotated[PlaywrightCheckWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace a Playwright suite; fields that are left out take their defaults."""
    return await replacing.replace(check_id, body)


@router.post("/agentic", status_code=201, responses=answers(201, AgenticCheckShown, _CREATED))
async def create_agentic_check(
    body: Annotated[AgenticCheckWrite, Body()], creating: CreatingDep
) -> Response:
    """Create an agentic check. No agent runs these yet: each of its runs is recorded as missed."""
    return await creating.create(body)


@router.put("/agentic" + ONE, responses=answers(200, AgenticCheckShown, _CREATED, 404))
async def replace_agentic_check(
    check_id: CheckId, body: Annotated[AgenticCheckWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace an agentic check; fields that are left out take their defaults."""
    return await replacing.replace(check_id, body)
