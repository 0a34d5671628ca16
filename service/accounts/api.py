"""`/v1/accounts`: whom the caller's key speaks for."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final

from fastapi import Body, Path
from sqlalchemy import Connection
from starlette.responses import Response

from contract.runtimes import RUNTIMES
from service.accounts import actions
from service.accounts.model import AccountRow, Caller
from service.checks.fields import AlertSettings
from service.http.auth import CallerDep
from service.http.dependencies import Backend, BackendDep
from service.http.errors import NotFoundError
from service.http.mutations import Changed, ChangeDep, sent_fields
from service.http.routing import answers, json, json_model, keyed_operations
from service.http.schema import NO_NUL, ResponseModel
from service.locations import actions as locations
from service.locations.model import REGIONS
from service.vault.encryption import Scope


class RegionOffered(ResponseModel):
    """A region, and whether this account has agents for it."""

    id: str
    name: str
    available: bool
    """A private location of the account has this region as its slug."""


class Offered(ResponseModel):
    """Where checks may run."""

    all: list[RegionOffered]
    max_per_check: int


class EntitlementsShown(ResponseModel):
    """What an account may use: everything, as there are no plans."""

    plan: str
    plan_display_name: str
    addons: dict[str, Any]
    """Always empty."""
    locations: Offered
    entitlements: list[dict[str, Any]]
    """Always empty: no feature is restricted."""


class AccountShown(ResponseModel):
    """An account."""

    id: str
    """The value for the header x-service-account."""
    name: str
    runtime_id: str
    """The runtime of scripts that name none."""
    plan: str
    """Always self-hosted: there are no plans."""
    plan_display_name: str
    settings: dict[str, Any]
    """Settings of the account; there are none yet."""
    alert_settings: dict[str, Any]
    """The alert settings of checks with `useGlobalAlertSettings`."""


class CallerShown(ResponseModel):
    """Whom a key speaks for."""

    id: str
    name: str
    """The name of the key."""


router = keyed_operations("Accounts", prefix="/v1/accounts")

_ONE = "/{accountId}"
_WHAT = "/entitlements"
AccountId = Annotated[str, Path(alias="accountId", pattern=NO_NUL, max_length=200)]


@router.get("", responses=answers(200, list[AccountShown], "Only the key's account."))
async def list_accounts(caller: CallerDep, backend: BackendDep) -> Response:
    """List the key's accounts; there is exactly one."""
    own = await _read_own(caller, backend)
    return json([own.model_dump(mode="json", by_alias=True)])


@router.get("/me", responses=answers(200, AccountShown, "The key's account."))
async def read_own_account(caller: CallerDep, backend: BackendDep) -> Response:
    """Read the key's account."""
    return json_model(await _read_own(caller, backend))


@router.put(
    "/me/alert-settings",
    responses=answers(200, AlertSettings, "The alert settings as they are stored now."),
)
async def replace_own_alert_settings(
    changing: ChangeDep, body: Annotated[AlertSettings, Body()]
) -> Response:
    """Change the alert settings of checks with `useGlobalAlertSettings`; an addition of ours.

    What is left out gets its default.
    """
    ignored = await changing.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        settings = body.model_dump(mode="json", by_alias=True)
        actions.change_alert_settings(connection, scope.account_id, settings)
        answer = json(settings, headers=ignored)
        return Changed(answer=answer, resource_id=scope.account_id, fields=sent_fields(body))

    return await changing.make(change)


@router.get(_ONE, responses=answers(200, AccountShown, "The account.", 404))
async def read_account(account_id: AccountId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read an account by its id; only the key's own account exists for it."""
    if account_id != caller.account_id:
        raise NotFoundError(f"There is no account {account_id}.")
    return json_model(await _read_own(caller, backend))


@router.get("/me" + _WHAT, responses=answers(200, EntitlementsShown, "Everything."))
async def read_own_entitlements(caller: CallerDep, backend: BackendDep) -> Response:
    """Read what the key's account may use."""
    return await _read_entitlements(caller.account_id, backend)


@router.get(_ONE + _WHAT, responses=answers(200, EntitlementsShown, "Everything.", 404))
async def read_entitlements(
    account_id: AccountId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read what an account may use; only the key's own account exists for it."""
    if account_id != caller.account_id:
        raise NotFoundError(f"There is no account {account_id}.")
    return await _read_entitlements(account_id, backend)


clients_router = keyed_operations("Accounts", prefix="/next")
"""What the established service's own clients ask before anything else."""


@clients_router.get(
    "/accounts", responses=answers(200, list[AccountShown], "Only the key's account.")
)
async def list_accounts_for_clients(caller: CallerDep, backend: BackendDep) -> Response:
    """List the key's accounts, as `GET /v1/accounts`."""
    return await list_accounts(caller, backend)


@clients_router.get(
    "/accounts" + _ONE,
    responses=answers(200, AccountShown, "The account.", 404),
)
async def read_account_for_clients(
    account_id: AccountId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read an account, as `GET /v1/accounts/{accountId}`."""
    return await read_account(account_id, caller, backend)


@clients_router.get("/users/me", responses=answers(200, CallerShown, "The key."))
async def read_caller(caller: CallerDep, backend: BackendDep) -> Response:
    """Read whom the key speaks for: itself, as no user belongs to it."""
    name = await backend.database.read(lambda c: actions.find_name(c, caller))
    return json_model(CallerShown(id=caller.id, name=name))


async def _read_entitlements(account_id: str, backend: Backend) -> Response:
    slugs = await backend.database.read(lambda c: locations.list_ids_by_slug(c, account_id))
    return json_model(render_entitlements(backend.regions.list_regions(REGIONS, slugs), REGIONS))


async def _read_own(caller: Caller, backend: Backend) -> AccountShown:
    def query(connection: Connection) -> AccountShown:
        row = actions.find_account(connection, caller.account_id)
        chosen = actions.find_alert_settings(connection, row.id)
        settings = AlertSettings().model_dump(mode="json", by_alias=True)
        return render_account(row, alert_settings={**settings, **(chosen or {})})

    return await backend.database.read(query)


_PLAN: Final = "self-hosted"
_PLAN_NAME: Final = "Self-hosted"


def render_account(row: AccountRow, *, alert_settings: dict[str, Any]) -> AccountShown:
    """A stored account as its answer."""
    return AccountShown(
        id=row.id,
        name=row.name,
        runtime_id=next(iter(RUNTIMES)),
        plan=_PLAN,
        plan_display_name=_PLAN_NAME,
        settings={},
        alert_settings=alert_settings,
    )


def render_entitlements(served: Collection[str], regions: Mapping[str, str]) -> EntitlementsShown:
    """What an account may use. `served`: the regions in which something runs."""
    offered = [
        RegionOffered(id=region, name=name, available=region in served)
        for region, name in regions.items()
    ]
    return EntitlementsShown(
        plan=_PLAN,
        plan_display_name=_PLAN_NAME,
        addons={},
        locations=Offered(all=offered, max_per_check=len(offered)),
        entitlements=[],
    )
