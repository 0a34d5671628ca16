"""What routes are made of: the parts of the service, handed to the application once."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI
from starlette.requests import Request

from service.accounts.authenticate import ApiKeys
from service.bundles.files import BundleFiles
from service.clock import Clock
from service.db.engine import Database
from service.http.rate import RateLimit
from service.sessions.waiting import SessionWaiters


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Everything that the public API's routes use."""

    database: Database
    clock: Clock
    monotonic: Callable[[], float]
    """Seconds; for waits and rates."""
    keys: ApiKeys
    waiters: SessionWaiters
    rate: RateLimit
    bundles: BundleFiles
    artifacts: Path
    """The folder of the files of runs."""
    public_url: str | None = None
    """Where people and jobs reach the service. None: where the request came in."""

    def base_url(self, request: Request) -> str:
        """The address that links in answers begin with, without a slash at its end."""
        return (self.public_url or str(request.base_url)).rstrip("/")


def attach(app: FastAPI, backend: Backend) -> None:
    """Give the application its parts."""
    app.state.backend = backend


def _backend(request: Request) -> Backend:
    found: Backend = request.app.state.backend
    return found


BackendDep = Annotated[Backend, Depends(_backend)]
