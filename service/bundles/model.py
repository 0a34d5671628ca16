"""Code bundles and snapshots as they are stored and seen."""

from dataclasses import dataclass
from typing import Final

from pydantic import Field

from service.http.schema import ResponseModel
from service.http.times import Moment

MAX_BUNDLE_BYTES: Final = 256 * 1024 * 1024
"""The largest bundle that agents accept."""
MAX_SNAPSHOT_BYTES: Final = 16 * 1024 * 1024
"""The largest snapshot; a picture of a long page in full resolution has half of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What an upload has to be."""

    noun: str
    limit_bytes: int
    is_gzip: bool


CODE: Final = Content(noun="bundle", limit_bytes=MAX_BUNDLE_BYTES, is_gzip=True)
SNAPSHOT: Final = Content(noun="snapshot", limit_bytes=MAX_SNAPSHOT_BYTES, is_gzip=False)
"""A picture or a text, as Playwright compares them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRow:
    """A bundle as it is stored; its bytes are a file."""

    sha256: str
    size_bytes: int
    created_ms: int
    """When it was last uploaded."""
    is_snapshot: bool = False
    """Whether browser checks compare it; suites do not run it."""


class BundleShown(ResponseModel):
    """A bundle."""

    code_bundle_path: str
    """The id that a Playwright suite uses for it: its SHA-256."""
    size_bytes: int
    created_at: Moment = Field(alias="created_at")
    """When it was last uploaded."""
