"""Code bundles as they are stored and seen."""

from dataclasses import dataclass
from typing import Final

from pydantic import Field

from service.http.schema import ResponseModel
from service.http.times import Moment

MAX_BUNDLE_BYTES: Final = 256 * 1024 * 1024
"""The largest bundle that agents accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRow:
    """A bundle as it is stored; its bytes are a file."""

    sha256: str
    size_bytes: int
    created_ms: int
    """When it was last uploaded."""


class BundleShown(ResponseModel):
    """A bundle."""

    code_bundle_path: str
    """The id that a Playwright suite uses for it: its SHA-256."""
    size_bytes: int
    created_at: Moment = Field(alias="created_at")
    """When it was last uploaded."""
