"""The established command line moves a project to what `picket up` starts, and nothing else."""

from pathlib import Path

from tests.clients.scene import ClientScene, a_fresh_picket
from tests.clients.test_deploy_commands import TEMPLATE, section


async def names_of(scene: ClientScene) -> set[str]:
    return {one["name"] for one in await scene.ask("GET", "/v1/checks?limit=100")}


async def test_a_project_of_the_template_is_deployed_tested_and_triggered_with_picket_up_alone(
    tmp_path: Path,
) -> None:
    async with a_fresh_picket(tmp_path) as scene:
        starters = await names_of(scene)
        client = scene.client("template")
        assert scene.account_id in await client.run("whoami")
        deployed = await client.run("deploy", "--force", "--output")
        assert section(deployed, "Create") == sorted(TEMPLATE)
        deployed_names = {"Books API", "homepage.spec.ts", "Send the weekly newsletter", "Shop"}
        assert await names_of(scene) == starters | deployed_names
        assert "3 passed, 3 total" in await client.run("test")
        assert "3 passed, 3 total" in await client.run("trigger", "--tags", "mac")
        await client.run("destroy", "--force")
        assert await names_of(scene) == starters
