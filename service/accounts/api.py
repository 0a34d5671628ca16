"""`/v1/accounts`: whom the caller's key speaks for."""

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from service.accounts import actions
from service.accounts.model import Caller
from service.accounts.shapes import AccountShown, EntitlementsShown
from service.accounts.views import account_shown, entitlements_shown
from service.checks.alert_fields import AlertSettings
from service.http.auth import CallerDep
from service.http.backend import Backend, BackendDep
from service.http.errors import NotFoundError
from service.http.operations import keyed_operations
from service.http.routes import answers, json, json_model
from service.http.strict import NO_NUL
from service.locations import actions as locations
from service.locations.regions import REGIONS

router = keyed_operations("Accounts", prefix="/v1/accounts")

_ONE = "/{accountId}"
_WHAT = "/entitlements"
AccountId = Annotated[str, Path(alias="accountId", pattern=NO_NUL, max_length=200)]


@router.get("", responses=answers(200, list[AccountShown], "The key's account, and no other."))
async def list_accounts(caller: CallerDep, backend: BackendDep) -> Response:
    """List the accounts that the key speaks for, which is one."""
    own = await _own(caller, backend)
    return json([own.model_dump(mode="json", by_alias=True)])


@router.get("/me", responses=answers(200, AccountShown, "The key's account."))
async def read_own_account(caller: CallerDep, backend: BackendDep) -> Response:
    """Read the account that the key speaks for."""
    return json_model(await _own(caller, backend))


@router.get(_ONE, responses=answers(200, AccountShown, "The account.", 404))
async def read_account(account_id: AccountId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read an account by its id; another than the key's is not there."""
    if account_id != caller.account_id:
        raise NotFoundError(f"There is no account {account_id}.")
    return json_model(await _own(caller, backend))


@router.get("/me" + _WHAT, responses=answers(200, EntitlementsShown, "Everything."))
async def read_own_entitlements(caller: CallerDep, backend: BackendDep) -> Response:
    """Read what the key's account may use."""
    return await _entitlements(caller.account_id, backend)


@router.get(_ONE + _WHAT, responses=answers(200, EntitlementsShown, "Everything.", 404))
async def read_entitlements(
    account_id: AccountId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read what an account may use; another than the key's is not there."""
    if account_id != caller.account_id:
        raise NotFoundError(f"There is no account {account_id}.")
    return await _entitlements(account_id, backend)


async def _entitlements(account_id: str, backend: Backend) -> Response:
    slugs = await backend.database.read(lambda c: locations.ids_by_slug(c, account_id))
    return json_model(entitlements_shown(slugs, REGIONS))


async def _own(caller: Caller, backend: Backend) -> AccountShown:
    row = await backend.database.read(lambda c: actions.find_account(c, caller.account_id))
    settings = AlertSettings().model_dump(mode="json", by_alias=True)
    return account_shown(row, alert_settings=settings)
