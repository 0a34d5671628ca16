"""The front door: probes, which answer from the first moment on, and the application behind it."""

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Final

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from contract.release import RELEASE
from service.http.error_body import error_response
from service.http.errors import ApiError

HEALTH: Final = "/health"
READINESS: Final = "/-/readiness"
LIVENESS: Final = "/-/liveness"
PATIENCE_S: Final = 20.0
"""How long a request waits for the database to open; a probe does not wait."""
_FRESH: Final[Mapping[str, str]] = {"cache-control": "no-store"}


class Stage(StrEnum):
    """The service's life, in order."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class NotOpenError(ApiError):
    """503: the service starts or stops; try again."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class Front:
    """What the server calls. Requests that come before the application is there wait for it."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._app: ASGIApp | None = None
        """None: the database is not open yet."""
        self._settled = asyncio.Event()
        """Set once it is known whether there will be an application."""
        self.stage = Stage.STARTING
        self._probes = {
            HEALTH: self._health,
            READINESS: self._readiness,
            LIVENESS: self._liveness,
        }

    def open(self, app: ASGIApp) -> None:
        """The database is migrated and open: serve."""
        self._app = app
        if self.stage is Stage.STARTING:
            self.stage = Stage.READY
        self._settled.set()

    def drain(self) -> None:
        """The service is told to stop: whoever sends it requests should look elsewhere."""
        self.stage = Stage.DRAINING
        self._settled.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        probe = self._probes.get(scope["path"]) if scope["type"] == "http" else None
        if probe is not None:
            answer = probe() if scope["method"] in ("GET", "HEAD") else _use_get(scope)
            await answer(scope, receive, send)
            return
        await (self._app or await self._opened())(scope, receive, send)

    async def _opened(self) -> ASGIApp:
        """The application, or a refusal when there is none in time."""
        try:
            async with asyncio.timeout(self._patience_s):
                await self._settled.wait()
        except TimeoutError:
            pass
        return self._app or error_response(
            NotOpenError(f"The service is {self.stage}; try again.", headers={"retry-after": "1"})
        )

    def _health(self) -> Response:
        """Says that the process answers, and how far it is."""
        return JSONResponse({"status": self.stage.value, "version": RELEASE}, headers={**_FRESH})

    def _readiness(self) -> Response:
        if self.stage is Stage.READY:
            return _sentence(HTTPStatus.OK, "OK")
        return _sentence(HTTPStatus.SERVICE_UNAVAILABLE, f"The service is {self.stage}.")

    def _liveness(self) -> Response:
        """An event loop that is stuck does not get here."""
        return _sentence(HTTPStatus.OK, "OK")


def _sentence(status: HTTPStatus, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status_code=status, headers={**_FRESH})


def _use_get(scope: Scope) -> Response:
    refusal = ApiError(
        f"{scope['method']} is not possible at {scope['path']}.", headers={"allow": "GET, HEAD"}
    )
    refusal.status = HTTPStatus.METHOD_NOT_ALLOWED
    return error_response(refusal)
