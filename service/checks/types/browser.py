"""Browser checks in the API."""

from typing import Final

from contract.checks import CheckType
from service.analytics.measures import BROWSER_MEASURES, BY_PAGE, Analytics
from service.checks.fields import Domain
from service.checks.schemas import ScriptCheckWrite
from service.checks.types.definition import PLACES, TypeDefinition


class BrowserCheckWrite(ScriptCheckWrite):
    """A browser check: a script that drives a browser."""

    kind = CheckType.BROWSER
    ssl_check_domain: Domain = None
    """Host whose certificate alerts on expiry watch; each run looks at it, at port 443. Null:
    none."""


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
