"""The command line makes code of what an account has, and deploys it without a change."""

from pathlib import Path
from typing import Any

from tests.clients.scene import ClientScene, a_client_scene

KINDS = (
    *("check", "check-group", "alert-channel", "private-location"),
    *("status-page", "status-page-service", "maintenance-window"),
)
CONFIG = """
import { defineConfig } from 'checkly'

export default defineConfig({
  projectName: 'Taken over',
  logicalId: 'taken-over',
  checks: { checkMatch: '**/__checks__/**/*.check.ts' },
})
"""
NEVER_IN_CODE = {"updated_at", "scriptPath", "doubleCheck", "retryStrategy", "triggerIncident"}


async def everything_there(scene: ClientScene) -> dict[str, Any]:
    """What the account has, without what the command line has no words for."""
    found = {}
    for kind in ("checks", "check-groups", "alert-channels", "maintenance-windows"):
        listed = await scene.ask("GET", f"/v1/{kind}?limit=100")
        found[kind] = [
            {name: value for name, value in one.items() if name not in NEVER_IN_CODE}
            for one in listed
        ]
    for check in found["checks"]:
        if check["checkType"] == "HEARTBEAT":
            del check["privateLocations"]
    return found


async def test_what_exists_becomes_code_that_changes_nothing_when_it_is_deployed(
    tmp_path: Path,
) -> None:
    async with a_client_scene(tmp_path) as scene:
        everything = scene.client("everything")
        await everything.run("deploy", "--force")
        await everything.run("destroy", "--force", "--preserve-resources")
        await scene.ask("POST", "/next/projects", {"logicalId": "taken-over", "name": "Taken over"})
        client = scene.client("everything", copy=1)
        client.environ["CHECKLY_SECRET_SHELF"] = "1"
        for old in client.project.glob("checks/*.ts"):
            old.unlink()
        (client.project / "checkly.config.ts").write_text(CONFIG)
        assert "import plan has been created" in await client.run("import", "plan", *KINDS)
        before = await everything_there(scene)
        assert "has been applied" in await client.run("import", "apply", "--no-commit")
        deployed = await client.run("deploy", "--force", "--output")
        assert "Create:" not in deployed
        assert await everything_there(scene) == before
        assert "has been committed" in await client.run("import", "commit", "--force")
        assert "Nothing to cancel" in await client.run("import", "cancel", "--all", "--force")
