"""Playwright suites in the API."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field, model_validator

from contract.checks import CheckType
from service.analytics.measures import SCRIPT, Analytics
from service.checks.fields import Browser, BundlePath, Command, Engine, FolderPath, Label, Listing
from service.checks.rules import NO_PHASES, SCRIPT_DECIDES
from service.checks.schemas import MinuteCheckWrite, VariablesWrite
from service.checks.types.definition import PLACES, TypeDefinition

_SUITE_RETRIES: Final = {
    "retryStrategy": (
        "would have no effect: a suite retries as its own configuration says; omit it"
    ),
}


class PlaywrightCheckWrite(VariablesWrite, MinuteCheckWrite):
    """A Playwright suite: tests, configuration and packages of a whole project."""

    kind = CheckType.PLAYWRIGHT
    refused = NO_PHASES | SCRIPT_DECIDES | _SUITE_RETRIES
    double_check: bool = False
    """No effect: a suite retries as its own configuration says."""
    code_bundle_path: BundlePath
    """The SHA-256 of a tar.gz that was uploaded to `/v1/code-bundles`."""
    test_command: Command = "npx playwright test"
    """The command with its options, as in --project=chromium --grep=@smoke."""
    install_command: Command = ""
    """Empty: chosen by the lock file of the suite."""
    browsers: Listing[Browser] = Field(default_factory=list)
    """Browsers that the suite's projects use; empty: unknown."""
    playwright_version: Label = None
    """If it differs from the lock file, which decides, the log says so."""
    working_dir: FolderPath = None
    """Folder of the bundle that commands run in. `.` and null: its root."""
    cache_hash: Label = None
    """A new value reinstalls the packages, as a changed lock file does."""
    engine: Engine = None
    """Null: node."""
    engine_version: Label = None
    """A Node version that the agent has. Null: that of the check's runtime."""

    @model_validator(mode="after")
    def _runs_on_something(self) -> "PlaywrightCheckWrite":
        self.hold_runtime()
        return self

    @classmethod
    def spec_fields(cls, doc: Mapping[str, Any]) -> dict[str, Any]:
        """A bundle is named by its hash."""
        return {**super().spec_fields(doc), "bundleSha256": doc["codeBundlePath"]}


PLAYWRIGHT = TypeDefinition(
    write=PlaywrightCheckWrite,
    purpose="Runs the tests of a whole Playwright project.",
    operation="playwright_suite",
    example={"name": "Checkout", "codeBundlePath": "0" * 64, **PLACES},
    analytics=Analytics(path="playwright-checks", measures=SCRIPT),
)
