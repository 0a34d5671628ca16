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
from service.results.model import StoredResult, asset_path

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

    def path(self, folder: Path) -> Path:
        """The file, once it is whole."""
        return self._run(folder) / str(self.fence) / self.name

    def unfinished(self, folder: Path) -> Path:
        """What came of it so far; each claim has its own, so that no two mix their bytes."""
        return self._run(folder) / f"{self.name}.{self.fence}.part"

    def _run(self, folder: Path) -> Path:
        return folder / self.location_id / str(self.run_id)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of a result."""

    artifact: Artifact
    file: RunFile
    path: Path
    """Where it lies, if it has arrived."""

    @property
    def content_type(self) -> str:
        """The file's content type if it is safe in a header, else the one for any bytes."""
        given = self.artifact.content_type
        return given if _CONTENT_TYPE.fullmatch(given) else _ANY_TYPE


def assets_of(
    connection: Connection, account_id: str, result: StoredResult, *, folder: Path
) -> tuple[Asset, ...]:
    """The files that a result names; those of a location that has gone are not found any more."""
    artifacts = result.detail.outcome.artifacts if result.detail else ()
    location_id = locations.list_ids_by_slug(connection, account_id).get(result.location)
    return tuple(
        Asset(one, file, file.path(folder))
        for one in artifacts
        if ARTIFACT_NAME.fullmatch(one.name)
        for file in (_file(result, location_id or "gone", one.name),)
    )


def find_asset(assets: tuple[Asset, ...], name: str) -> Asset:
    """The asset of this name.

    Raises:
        NotFoundError: there is none of this name, or it is not kept.
    """
    found = next((asset for asset in assets if asset.artifact.name == name), None)
    if found is None:
        raise NotFoundError(_no_file(name, assets))
    if not found.path.is_file():
        raise NotFoundError(f"The file {name} did not arrive, or is no longer stored.")
    return found


def _no_file(name: str, assets: tuple[Asset, ...]) -> str:
    known = ARTIFACT_NAME.fullmatch(name) is not None
    wanted = f"no file {name}" if known else "no file of this name"
    there = ", ".join(asset.artifact.name for asset in assets[:_MOST_NAMES])
    return f"The result has {wanted}; it has {there}." if there else f"The result has {wanted}."


def render(asset: Asset, *, base_url: str, check_id: str, result_id: str) -> dict[str, Any]:
    """A file as its list shows it."""
    one = asset.artifact
    return {
        "name": one.name,
        "type": one.kind,
        "contentType": asset.content_type,
        "sizeBytes": one.size_bytes,
        "sha256": one.sha256,
        "url": base_url + asset_path(check_id, result_id, one.name),
        "isKept": asset.path.is_file(),
    }


def _file(result: StoredResult, location_id: str, name: str) -> RunFile:
    return RunFile(location_id=location_id, run_id=result.run_id, fence=result.fence, name=name)
