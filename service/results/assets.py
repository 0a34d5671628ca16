"""Files of results: where they are kept, and who may read them."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from contract.agent_api import ARTIFACT_NAME
from contract.result import Artifact
from service.http.errors import NotFoundError
from service.locations import actions as locations
from service.object_store.model import ObjectStore, RemoteObject
from service.results.model import StoredResult

_CONTENT_TYPE: Final = re.compile(r"[a-z]+/[a-z0-9.+-]+(; ?charset=[a-z0-9-]+)?", re.IGNORECASE)
"""Agents say it, and people's scripts have made the file: nothing else goes into a header."""
_MOST_NAMES: Final = 10
_ANY_TYPE: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """A file of one attempt of a run."""

    location_id: str
    run_id: int
    fence: int
    """The fence of the claim under which it was made: each attempt keeps its own files."""
    name: str
    """One that `contract.agent_api.ARTIFACT_NAME` lets through."""

    @property
    def key(self) -> str:
        """Where the store has it, once it is whole."""
        return f"{self.attempt}/{self.name}"

    @property
    def attempt(self) -> str:
        """What the keys of all files of this attempt begin with."""
        return f"{self.location_id}/{self.run_id}/{self.fence}"

    def unfinished(self, folder: Path) -> Path:
        """What came of it so far; each claim has its own, so that no two mix their bytes."""
        run = folder / self.location_id / str(self.run_id)
        return run / f"{self.name}.{self.fence}.part"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of a result."""

    artifact: Artifact
    file: RunFile

    @property
    def content_type(self) -> str:
        """The file's content type if it is safe in a header, else the one for any bytes."""
        given = self.artifact.content_type
        return given if _CONTENT_TYPE.fullmatch(given) else _ANY_TYPE


def assets_of(connection: Connection, account_id: str, result: StoredResult) -> tuple[Asset, ...]:
    """The files that a result names; those of a location that has gone are not found any more."""
    artifacts = result.detail.outcome.artifacts if result.detail else ()
    location_id = locations.list_ids_by_slug(connection, account_id).get(result.location)
    return tuple(
        Asset(one, _file(result, location_id or "gone", one.name))
        for one in artifacts
        if ARTIFACT_NAME.fullmatch(one.name)
    )


def find_asset(assets: tuple[Asset, ...], name: str) -> Asset:
    """The asset of this name.

    Raises:
        NotFoundError: there is none of this name.
    """
    found = next((asset for asset in assets if asset.artifact.name == name), None)
    if found is None:
        raise NotFoundError(_no_file(name, assets))
    return found


async def open_asset(store: ObjectStore, asset: Asset) -> Path | RemoteObject:
    """The stored file of an asset.

    Raises:
        NotFoundError: it is not kept.
        ObjectStoreError: the store does not answer.
    """
    found = await store.find(asset.file.key)
    if found is None:
        name = asset.artifact.name
        raise NotFoundError(f"The file {name} did not arrive, or is no longer stored.")
    return found


async def list_kept(store: ObjectStore, assets: tuple[Asset, ...]) -> frozenset[str]:
    """The keys of those that have arrived and are still stored.

    Raises:
        ObjectStoreError: the store does not answer.
    """
    attempts = {asset.file.attempt for asset in assets}
    return frozenset[str]().union(*[await store.list_keys(one) for one in attempts])


def _no_file(name: str, assets: tuple[Asset, ...]) -> str:
    known = ARTIFACT_NAME.fullmatch(name) is not None
    wanted = f"no file {name}" if known else "no file of this name"
    there = ", ".join(asset.artifact.name for asset in assets[:_MOST_NAMES])
    return f"The result has {wanted}; it has {there}." if there else f"The result has {wanted}."


def render(asset: Asset, *, url: str, is_kept: bool) -> dict[str, Any]:
    """A file as its list shows it. `url`: where its bytes are."""
    one = asset.artifact
    return {
        "name": one.name,
        "type": one.kind,
        "contentType": asset.content_type,
        "sizeBytes": one.size_bytes,
        "sha256": one.sha256,
        "url": url,
        "source": "direct",
        "isKept": is_kept,
    }


def _file(result: StoredResult, location_id: str, name: str) -> RunFile:
    return RunFile(location_id=location_id, run_id=result.run_id, fence=result.fence, name=name)
