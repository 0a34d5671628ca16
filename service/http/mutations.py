"""Requests that change something: carried out once, and audited, in one transaction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Header
from pydantic import BaseModel
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.model import Caller
from service.audit import audit
from service.audit.model import Entry
from service.http.auth import CallerDep
from service.http.dependencies import Backend, BackendDep
from service.http.errors import InvalidError
from service.http.rate_limit import address_of
from service.http.routing import operation_id
from service.http.validation import ignored_header
from service.idempotency.model import IdempotentRequest, StoredResponse
from service.vault.encryption import Scope

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
REPLAYED: Final = {"idempotency-replayed": "true"}
_MOST_LETTERS: Final = 255
_OWN_TIMES: Final = frozenset({"updated_at", "updated_ms"})
_NOT_KEPT: Final = frozenset({"content-length"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The outcome of a change."""

    answer: Response
    resource_id: str | None
    """The id of what was changed. None: several things were."""
    fields: tuple[str, ...] = ()
    """The names of those that were set or changed, for the audit log."""


Change = Callable[[Connection, Scope], Changed]
"""Acts on the database alone."""


class Mutation:
    """A request that changes something; tells the audit log."""

    def __init__(self, request: Request, caller: CallerDep, backend: BackendDep) -> None:
        self.caller: Caller = caller
        self.backend: Backend = backend
        self.request = request

    @property
    def account_id(self) -> str:
        """The account whose things are changed."""
        return self.caller.account_id

    async def ignored_fields(self, body: BaseModel) -> dict[str, str]:
        """The header that names the fields of the body that have no meaning here."""
        return ignored_header(await self.request.json(), body)

    @property
    def base_url(self) -> str:
        """What links in the answer begin with."""
        return self.backend.base_url(self.request)

    async def make(self, change: Change) -> Response:
        """Make the change and note it, in one transaction."""
        return await self.backend.database.write(lambda c: self._make(c, change, self._scope(c)))

    async def delete(
        self, resource_id: str, act: Callable[[Connection, Scope], object]
    ) -> Response:
        """Delete something and note it, in one transaction."""

        def change(connection: Connection, scope: Scope) -> Changed:
            act(connection, scope)
            return Changed(answer=Response(status_code=204), resource_id=resource_id)

        return await self.make(change)

    def _scope(self, connection: Connection) -> Scope:
        now_ms = self.backend.clock.now_ms(connection)
        return Scope(self.account_id, now_ms, self.backend.vault)

    def _make(self, connection: Connection, change: Change, scope: Scope) -> Response:
        changed = change(connection, scope)
        route = self.request.scope["route"]
        entry = Entry(
            account_id=self.caller.account_id,
            key_id=self.caller.key_id,
            operation=operation_id(route),
            resource=route.path.split("/")[2],
            resource_id=changed.resource_id,
            fields=changed.fields,
            address=address_of(self.request),
            at_ms=scope.now_ms,
        )
        audit.record(connection, entry)
        return changed.answer


class IdempotentMutation(Mutation):
    """A request that makes something or runs something: sent again, it is answered again."""

    def __init__(
        self,
        request: Request,
        caller: CallerDep,
        backend: BackendDep,
        key: Annotated[
            str | None,
            Header(
                alias=IDEMPOTENCY_KEY,
                max_length=_MOST_LETTERS,
                json_schema_extra={"minLength": 1, "pattern": r"\S"},
                description=(
                    "Made by the client, another one for each request. Within 24 hours the same"
                    " request with the same key gets the same answer, and nothing is done again."
                ),
            ),
        ] = None,
    ) -> None:
        super().__init__(request, caller, backend)
        self._key = key

    async def make(self, change: Change) -> Response:
        """Make the change unless it was made before; its answer either way."""
        if self._key is None:
            return await super().make(change)
        asked = await self._asked(self._key)
        return await self.backend.database.write(lambda c: self._make_once(c, change, asked))

    async def _asked(self, key: str) -> IdempotentRequest:
        if not key.strip():
            raise InvalidError(
                f'"{IDEMPOTENCY_KEY}" must not be empty.', keys=(IDEMPOTENCY_KEY,), source="headers"
            )
        url = self.request.url
        head = f"{self.request.method} {url.path}?{url.query}\n".encode()
        request = head + await self.request.body()
        return IdempotentRequest(account_id=self.account_id, key=key, request=request)

    def _make_once(
        self, connection: Connection, change: Change, asked: IdempotentRequest
    ) -> Response:
        scope, answers = self._scope(connection), self.backend.answers
        kept = answers.find(connection, asked, now_ms=scope.now_ms)
        if kept is not None:
            return Response(kept.body, kept.status, headers={**kept.headers, **REPLAYED})
        answer = self._make(connection, change, scope)
        answers.keep(connection, asked, _kept(answer), now_ms=scope.now_ms)
        return answer


ChangeDep = Annotated[Mutation, Depends(Mutation)]
CreateDep = Annotated[IdempotentMutation, Depends(IdempotentMutation)]


def sent_fields(body: BaseModel) -> tuple[str, ...]:
    """The names of the fields that were sent."""
    fields = type(body).model_fields
    return tuple(sorted(fields[name].alias or name for name in body.model_fields_set))


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the fields that are not as they were."""
    names = (before.keys() | after.keys()) - _OWN_TIMES
    return tuple(sorted(name for name in names if before.get(name) != after.get(name)))


def _kept(answer: Response) -> StoredResponse:
    headers = {name: value for name, value in answer.headers.items() if name not in _NOT_KEPT}
    return StoredResponse(status=answer.status_code, headers=headers, body=bytes(answer.body))
