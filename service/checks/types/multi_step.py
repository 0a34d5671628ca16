"""Multi-step checks in the API."""

from typing import Final

from contract.checks import CheckType
from service.analytics.measures import SCRIPT, Analytics
from service.checks.schemas import ScriptCheckWrite
from service.checks.types.definition import PLACES, TypeDefinition


class MultiStepCheckWrite(ScriptCheckWrite):
    """A multi-step check: a script with several API requests."""

    kind = CheckType.MULTI_STEP


_START: Final = """\
import { test, expect } from '@playwright/test'

test('orders', async ({ request }) => {
  const answer = await request.get('https://shop.example/api/orders')
  expect(answer.status()).toBe(200)
})
"""


MULTI_STEP = TypeDefinition(
    write=MultiStepCheckWrite,
    purpose="Runs a script that makes several requests in a row.",
    start={"script": _START},
    example={
        "name": "Order",
        "script": (
            "const { test } = require('@playwright/test'); test('works', async"
            " ({ request }) => { await request.get('https://shop.example/') })"
        ),
        **PLACES,
    },
    analytics=Analytics(path="multistep-checks", measures=SCRIPT),
)
