"""Multi-step checks in the API."""

from contract.checks import CheckType
from service.analytics.measures import SCRIPT, Analytics
from service.checks.schemas import ScriptCheckWrite
from service.checks.types.definition import PLACES, TypeDefinition


class MultiStepCheckWrite(ScriptCheckWrite):
    """A multi-step check: a script with several API requests."""

    kind = CheckType.MULTI_STEP


MULTI_STEP = TypeDefinition(
    write=MultiStepCheckWrite,
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
