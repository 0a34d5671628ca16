"""Snapshots that runs of tests wrote anew: named in their results, and fetched by those names."""

from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from contract.evidence import BrowserEvidence
from service.http.dependencies import Backend
from service.http.errors import NotFoundError
from service.object_store.model import RemoteObject
from service.results import actions as results
from service.results import assets
from service.results.assets import Asset
from service.results.model import StoredResult
from service.sessions import actions as sessions

_PARTS: Final = 3


def is_written_key(key: str) -> bool:
    """Whether a key has the form of those in results; one of uploads is a hash."""
    return len(key.split("/")) == _PARTS


def render_assets(stored: StoredResult) -> dict[str, Any]:
    """What a client does with a run that wrote snapshots; empty: it wrote none.

    A client that sees `assets` prints no log but the one that it fetches from
    `/next/assets/log/{region}/{logPath}`.
    """
    written = _render_written(stored)
    log = {"region": stored.session_id, "logPath": stored.id}
    return {"snapshots": written, **log} if written else {}


def _render_written(stored: StoredResult) -> list[dict[str, Any]]:
    """What the client takes over as its new snapshots: their keys and their paths."""
    outcome = stored.detail.outcome if stored.detail else None
    if outcome is None or not isinstance(outcome.evidence, BrowserEvidence):
        return []
    sent = {one.name for one in outcome.artifacts}
    return [
        {"key": f"{stored.session_id}/{stored.id}/{one.artifact}", "path": one.path}
        for one in outcome.evidence.snapshots
        if one.artifact in sent
    ]


async def open_written(
    backend: Backend, account_id: str, key: str
) -> tuple[Asset, Path | RemoteObject]:
    """A snapshot by its key, and its bytes.

    Raises:
        NotFoundError: the account has none with this key, or it is not stored any more.
        ObjectStoreError: the store does not answer.
    """
    session_id, result_id, name = key.split("/")

    def query(connection: Connection) -> Asset:
        stored = find_run(connection, account_id, session_id, result_id)
        return assets.find_asset(assets.assets_of(connection, account_id, stored), name)

    asset = await backend.database.read(query)
    return asset, await assets.open_asset(backend.artifacts, asset)


def find_run(
    connection: Connection, account_id: str, session_id: str, result_id: str
) -> StoredResult:
    """A result of the session of a check.

    Raises:
        NotFoundError: the account has no such session, or that has no such result.
    """
    session = sessions.find(connection, account_id, session_id)
    stored = results.find(connection, session.check_id, result_id)
    if stored is None or stored.session_id != session_id:
        raise NotFoundError(f"There is no result {result_id} of this session.")
    return stored
