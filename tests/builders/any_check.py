"""The least body of every type, with whatever has to be there before it."""

from typing import Any, Final

from contract.checks import CheckType
from tests.builders.check_bodies import AGENTIC, SCRIPTED, check_body, script_body
from tests.builders.code_bundles import a_bundle, suite_body
from tests.servers.public_api import ApiUser

TYPES: Final = {kind.value.lower().replace("_", ""): kind.value for kind in CheckType}
"""By the last part of their paths."""


async def least_body(user: ApiUser, kind: str, **fields: Any) -> dict[str, Any]:
    """A body that `/v1/checks/{kind}` takes from this user."""
    if kind == "agentic":
        await user.post("/v1/private-locations", {"name": "Virginia", "slugName": "us-east-1"})
        return {**AGENTIC, **fields}
    if kind == "playwright":
        return suite_body(await a_bundle(user), **fields)
    return script_body(kind, **fields) if kind in SCRIPTED else check_body(kind, **fields)
