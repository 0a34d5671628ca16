"""A trace in Playwright's viewer, framed from its own origin."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions as checks
from service.checks.model import CheckRow
from service.http.errors import NotFoundError
from service.results import actions as results
from service.results import assets
from service.results.assets import Asset
from service.results.model import StoredResult
from service.traces.trace_links import TraceLinks
from service.traces.viewer_app import viewer_path
from service.web.rendering import POLICY
from service.web.visit import Visit

_NO_VIEWER: Final = (
    "The trace viewer needs a host name of its own, which this address of the service has not:"
    " it shows pages that a target controlled. Set TRACE_VIEWER_URL to open traces here."
)
_NOT_LISTENING: Final = (
    "The trace viewer is off, or its port was taken when the service started: set"
    " TRACE_VIEWER_PORT to a free one, and restart the service."
)


def find_origin(visit: Visit) -> str | None:
    """The viewer's origin for this visitor's browser. None: it can open no trace."""
    url = visit.request.url
    return visit.backend.trace_viewer.origin_for(url.scheme, url.hostname or "")


def explain_absence(visit: Visit) -> str:
    """Why there is no viewer, and what to do; empty: there is one."""
    if find_origin(visit) is not None:
        return ""
    return _NOT_LISTENING if visit.backend.trace_viewer.port is None else _NO_VIEWER


async def show_trace(visit: Visit) -> Response:
    """The page around the viewer."""
    params = visit.request.path_params

    def read(connection: Connection) -> tuple[CheckRow, StoredResult, Asset]:
        check = checks.find(connection, visit.account_id, params["check_id"])
        stored = results.find(connection, check.id, params["result_id"])
        if stored is None:
            raise NotFoundError("There is no such result of this check.")
        found = assets.assets_of(connection, visit.account_id, stored)
        return check, stored, assets.find_asset(found, params["name"])

    check, stored, asset = await visit.read(read)
    here = f"/checks/{check.id}"
    around = Around(check.name, here, f"{here}/results/{stored.id}", stored.started_ms)
    return await frame_trace(visit, asset, around)


@dataclass(frozen=True, slots=True)
class Around:
    """The pages that lead to a trace."""

    name: str
    """What its check is called."""
    here: str
    """The page of the check."""
    this: str
    """The page of the result; that of the check where both are one."""
    started_ms: int


async def frame_trace(visit: Visit, asset: Asset, around: Around) -> Response:
    """Show a trace in the viewer.

    Raises:
        NotFoundError: the file is no trace, or is not stored any more.
    """
    if asset.artifact.kind != "trace":
        raise NotFoundError(f"The file {asset.artifact.name} is no trace.")
    await assets.open_asset(visit.backend.artifacts, asset)
    origin = find_origin(visit)
    address = ""
    if origin is not None:
        token = TraceLinks(visit.backend.pepper).sign(asset.file)
        address = origin + viewer_path(token)
    answer = visit.page(
        "trace.html",
        around=around,
        name=asset.artifact.name,
        address=address,
        absence=explain_absence(visit),
    )
    if origin is not None:
        answer.headers["content-security-policy"] = f"{POLICY}; frame-src {origin}"
    return answer
