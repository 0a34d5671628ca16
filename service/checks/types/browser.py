"""Browser checks in the API."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from contract.checks import CheckType
from contract.scripts import MAX_PATH_LETTERS, snapshots_problem
from service.analytics.measures import BROWSER_MEASURES, BY_PAGE, Analytics
from service.checks.fields import Domain, Listing, SnapshotKey
from service.checks.schemas import ScriptCheckWrite
from service.checks.types.definition import PLACES, TypeDefinition
from service.http.schema import RequestModel, Text, field_error


class SnapshotWrite(RequestModel):
    """A file that Playwright compares with what the script sees."""

    key: SnapshotKey
    """What its upload to `/next/checkly-storage/upload` was answered with."""
    path: Annotated[Text, Field(min_length=1, max_length=MAX_PATH_LETTERS)]
    """Relative to the same folder as `scriptPath`."""


class BrowserCheckWrite(ScriptCheckWrite):
    """A browser check: a script that drives a browser."""

    kind = CheckType.BROWSER
    ssl_check_domain: Domain = None
    """Host whose certificate alerts on expiry watch; each run looks at it, at port 443. Null:
    none."""
    snapshots: Listing[SnapshotWrite] = Field(default_factory=list)
    """What `toHaveScreenshot` and `toMatchSnapshot` compare with; where one is missing, the run
    fails."""

    @model_validator(mode="after")
    def _snapshots_fit(self) -> "BrowserCheckWrite":
        paths = [one.path for one in self.snapshots or ()]
        others = [one.path for one in self.dependencies or ()]
        if found := snapshots_problem(paths, script_path=self.script_path, dependencies=others):
            raise field_error(f"snapshots{found[0]}", found[1])
        return self

    @classmethod
    def spec_fields(cls, doc: Mapping[str, Any]) -> dict[str, Any]:
        """A snapshot is named by its hash."""
        named = [{"path": one["path"], "sha256": one["key"]} for one in doc.get("snapshots") or ()]
        return {**super().spec_fields(doc), "snapshots": named}


_START: Final = """\
import { test, expect } from '@playwright/test'

test('front page', async ({ page }) => {
  await page.goto('https://shop.example/')
  await expect(page).toHaveTitle(/Shop/)
})
"""


BROWSER = TypeDefinition(
    write=BrowserCheckWrite,
    purpose="Runs a Playwright script in a browser, as a user would.",
    start={"script": _START},
    example={
        "name": "Login",
        "script": (
            "const { test } = require('@playwright/test'); test('works', async"
            " ({ page }) => { await page.goto('https://shop.example/login') })"
        ),
        **PLACES,
    },
    analytics=Analytics(path="browser-checks", measures=BROWSER_MEASURES, groups=BY_PAGE),
)
