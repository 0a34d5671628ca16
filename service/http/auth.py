"""Who is calling: API key, account, role and rate limit."""

import math
from typing import Annotated, Final

from fastapi import Depends, Header
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import HTTPConnection, Request
from starlette.types import Scope

from service.accounts.model import Caller, Role
from service.http.dependencies import Backend, BackendDep
from service.http.errors import ForbiddenError, TooManyError, UnauthorizedError
from service.http.rate_limits.rate_limit import RateClass, class_of, place_of
from service.http.validation import check_query, check_repeated

KNOWN_CALLER: Final = "picket.caller"
"""Where the scope of a request has its caller when a page of ours makes it for somebody signed in.

No request from outside can put anything there.
"""
_READING: Final = frozenset({"GET", "HEAD"})
_ALSO_READING: Final = frozenset(
    {
        "/v1/analytics/checks",
        "/v1/alert-settings/preview",
        "/next/checkly-storage/peek-code-bundle",
        "/next/checkly-storage/download",
    }
)
"""Paths whose POST changes nothing: its body would not fit into a URL, or clients send one."""
_bearer = HTTPBearer(auto_error=False, scheme_name="apiKey", description="An API key, `cu_…`.")

Account = Annotated[
    str | None,
    Header(
        alias="x-service-account",
        description="The id of the key's account. Optional: a key belongs to one account.",
    ),
]
AlsoAccount = Annotated[
    str | None,
    Header(
        alias="x-checkly-account",
        description="Another name of `x-service-account`, for clients that send it.",
    ),
]


async def require_key(backend: Backend, scope: Scope) -> None:
    """Check the API key before the body is read.

    Raises:
        UnauthorizedError: the request has no valid key.
        TooManyError: too many such requests came from there.
    """
    connection = HTTPConnection(scope)
    scheme, _, key = connection.headers.get("authorization", "").partition(" ")
    await _authenticate(backend, connection, key.strip() if scheme.lower() == "bearer" else "")


async def _known_caller(
    request: Request,
    backend: BackendDep,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Caller:
    return await _authenticate(backend, request, bearer.credentials if bearer else "")


async def _authenticate(backend: Backend, connection: HTTPConnection, key: str) -> Caller:
    known = connection.scope.get(KNOWN_CALLER)
    if isinstance(known, Caller):
        return known
    # It is looked up however many others were refused there: a good key that has not come before
    # would be shut out with them, and a look-up costs no more than to refuse.
    caller = await backend.keys.caller(key)
    if caller is None:
        refuse_early(backend.limits.wait_s(RateClass.REFUSED, place_of(connection)))
        raise UnauthorizedError
    return caller


def _caller(
    request: Request,
    backend: BackendDep,
    caller: Annotated[Caller, Depends(_known_caller)],
    account: Account = None,
    also_account: AlsoAccount = None,
) -> Caller:
    kind = class_of(request.method, request.scope["route"].path)
    refuse_early(backend.limits.wait_s(kind, caller.id))
    for header, meant in (("x-service-account", account), ("x-checkly-account", also_account)):
        if meant and meant != caller.account_id:
            raise ForbiddenError(f"This API key does not belong to the account in {header}.")
    _require_role(request, caller)
    check_query(request)
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]


async def _caller_of_badge(
    request: Request,
    backend: BackendDep,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    account: Account = None,
    also_account: AlsoAccount = None,
) -> Caller | None:
    if backend.badges_for_anyone and bearer is None:
        limit_by_address(request, backend)
        check_repeated(request)
        return None
    known = await _known_caller(request, backend, bearer)
    return _caller(request, backend, known, account, also_account)


MaybeCallerDep = Annotated[Caller | None, Depends(_caller_of_badge)]
"""The caller of a badge. None: anyone, where the operator makes badges public."""


def limit_by_address(request: Request, backend: BackendDep) -> None:
    """For operations that need no key: 429 to whoever asks too often."""
    refuse_early(backend.limits.wait_s(RateClass.GENERAL, place_of(request)))


def refuse_early(wait_s: float) -> None:
    """Refuse a request that comes too early.

    Raises:
        TooManyError: there is something to wait for.
    """
    if not wait_s:
        return
    retry_after_s = math.ceil(wait_s)
    raise TooManyError(
        f"Too many requests; try again in {retry_after_s} s.",
        attributes={"retryAfter": retry_after_s},
        headers={"retry-after": str(retry_after_s)},
    )


def _require_role(request: Request, caller: Caller) -> None:
    if request.method in _READING or request.scope["route"].path in _ALSO_READING:
        return
    if caller.role is Role.READ_ONLY:
        raise ForbiddenError(
            f"{'This API key' if caller.user_id is None else 'Your role'} is {Role.READ_ONLY};"
            f" {request.method} takes one that is {Role.READ_WRITE}."
        )
