"""Who is calling: the API key, the account that is meant, and how often it asks."""

import math
from typing import Annotated

from fastapi import Depends, Header
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from service.accounts.model import Caller
from service.http.backend import BackendDep
from service.http.errors import ForbiddenError, TooManyError, UnauthorizedError

_bearer = HTTPBearer(
    auto_error=False, scheme_name="apiKey", description="An API key: `Bearer cu_…`"
)


async def _caller(
    backend: BackendDep,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    account: Annotated[
        str | None,
        Header(
            alias="x-service-account",
            description="The account that is meant. Optional: a key belongs to one account.",
        ),
    ] = None,
) -> Caller:
    caller = await backend.keys.caller(bearer.credentials) if bearer else None
    if caller is None:
        raise UnauthorizedError
    if account and account != caller.account_id:
        raise ForbiddenError("This API key does not belong to the account in x-service-account.")
    if wait_s := backend.rate.wait_s(caller.key_id):
        retry_after_s = math.ceil(wait_s)
        raise TooManyError(
            f"Too many requests; try again in {retry_after_s} s.",
            attributes={"retryAfter": retry_after_s},
            headers={"retry-after": str(retry_after_s)},
        )
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]
