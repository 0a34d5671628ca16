"""`/settings/users`: people who may sign in, and what they may do."""

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.accounts.model import Role
from service.http.errors import ApiError, ConflictError, ForbiddenError, InvalidError
from service.sign_in import actions as sign_in
from service.users import actions as users
from service.users.model import NewUser, UserRow
from service.web.form_data import FormData, read_form
from service.web.page_routing import Page, Pages
from service.web.settings.recorded_change import change_recorded
from service.web.visit import Visit

_UNPROCESSABLE: Final = 422
_NOT_ONESELF: Final = "You cannot change your own role or disable yourself; ask somebody else to."


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The list, a new one, and what happens to one."""
    return (
        pages.show("/settings/users", _show),
        pages.change("/settings/users", _create),
        pages.show("/settings/users/{userId}", _show_one),
        pages.change("/settings/users/{userId}/link", _make_link),
        pages.change("/settings/users/{userId}/role", _change_role),
        pages.change("/settings/users/{userId}/disable", _changing("users disable", _disable)),
        pages.change("/settings/users/{userId}/enable", _changing("users enable", _enable)),
    )


async def _show(visit: Visit) -> Response:
    return await _page(visit, form=FormData([]))


async def _create(visit: Visit) -> Response:
    form = await read_form(visit.request)
    new = NewUser(email=form.text("email"), name=form.text("name"), role=_read_role(form))

    def act(connection: Connection, now_ms: int) -> tuple[str, tuple[UserRow, str]]:
        user = users.create_user(connection, visit.account_id, new, now_ms=now_ms)
        return user.id, (user, _link(connection, visit, user, now_ms))

    try:
        user, link = await change_recorded(
            visit, "users create", act, fields=("email", "name", "role")
        )
    except (InvalidError, ConflictError) as wrong:
        return await _page(visit, form=form, wrong=wrong)
    return visit.page("settings_user_link.html", user=user, link=link, is_new=True)


async def _show_one(visit: Visit) -> Response:
    def query(connection: Connection) -> tuple[UserRow, int]:
        return _find(connection, visit), visit.now_ms(connection)

    user, now_ms = await visit.read(query)
    is_own = user.id == visit.visitor.caller.user_id
    return visit.page("settings_user.html", user=user, now_ms=now_ms, is_own=is_own)


async def _make_link(visit: Visit) -> Response:
    def act(connection: Connection, now_ms: int) -> tuple[str, tuple[UserRow, str]]:
        user = _find(connection, visit)
        if user.disabled_ms is not None:
            raise ForbiddenError(f"{user.email} is disabled; enable the user first.")
        return user.id, (user, _link(connection, visit, user, now_ms))

    user, link = await change_recorded(visit, "users password", act, fields=("link",))
    return visit.page("settings_user_link.html", user=user, link=link, is_new=False)


def _link(connection: Connection, visit: Visit, user: UserRow, now_ms: int) -> str:
    raw = sign_in.create_password_link(connection, visit.backend.pepper, user.id, now_ms=now_ms)
    return f"{visit.base_url}/password/{raw}"


async def _change_role(visit: Visit) -> Response:
    role = _read_role(await read_form(visit.request))

    def act(connection: Connection, _now_ms: int) -> tuple[str, None]:
        user = _find_other(connection, visit)
        users.change_role(connection, user.id, role)
        return user.id, None

    await change_recorded(visit, "users role", act, fields=("role",))
    return visit.go(_path_of(visit))


def _changing(operation: str, act: Callable[[Connection, str, int], None]) -> Page:
    async def page(visit: Visit) -> Response:
        def change(connection: Connection, now_ms: int) -> tuple[str, None]:
            user = _find_other(connection, visit)
            act(connection, user.id, now_ms)
            return user.id, None

        await change_recorded(visit, operation, change)
        return visit.go(_path_of(visit))

    return page


def _disable(connection: Connection, user_id: str, now_ms: int) -> None:
    sign_in.disable_user(connection, user_id, now_ms=now_ms)


def _enable(connection: Connection, user_id: str, _now_ms: int) -> None:
    users.enable(connection, user_id)


def _find(connection: Connection, visit: Visit) -> UserRow:
    user_id = str(visit.request.path_params["userId"])
    return users.find_user(connection, user_id, account_id=visit.account_id)


def _find_other(connection: Connection, visit: Visit) -> UserRow:
    user = _find(connection, visit)
    if user.id == visit.visitor.caller.user_id:
        raise ForbiddenError(_NOT_ONESELF)
    return user


def _path_of(visit: Visit) -> str:
    return f"/settings/users/{visit.request.path_params['userId']}"


def _read_role(form: FormData) -> Role:
    return Role.READ_ONLY if form.text("role") == Role.READ_ONLY else Role.READ_WRITE


async def _page(visit: Visit, *, form: FormData, wrong: ApiError | None = None) -> Response:
    def query(connection: Connection) -> tuple[tuple[UserRow, ...], int]:
        found = users.list_users(connection, account_id=visit.account_id)
        return found, visit.now_ms(connection)

    found, now_ms = await visit.read(query)
    oidc = visit.backend.oidc
    keys = wrong.keys if isinstance(wrong, InvalidError) else ("email",)
    return visit.page(
        "settings_users.html",
        status=_UNPROCESSABLE if wrong else 200,
        users=sorted(found, key=lambda user: user.disabled_ms is not None),
        now_ms=now_ms,
        issuer=oidc and urlsplit(oidc.settings.issuer).hostname,
        problems=dict.fromkeys(keys, wrong.message) if wrong else {},
        email=form.text("email"),
        name=form.text("name"),
        role=_read_role(form),
    )
