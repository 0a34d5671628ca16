"""The established command line reads and changes an account, behind the address alone."""

import re
from pathlib import Path

from tests.clients.scene import ClientScene, a_client_scene


async def a_check(scene: ClientScene, name: str, **fields: object) -> str:
    body = {
        "name": name,
        "privateLocations": ["default"],
        "request": {"url": scene.shop},
        **fields,
    }
    return str((await scene.ask("POST", "/v1/checks/url", body))["id"])


async def test_a_key_is_known_by_its_account_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path) as scene:
        client = scene.client("template")
        assert f'account "Default" ({scene.account_id})' in await client.run("whoami")
        assert "2026.04" in await client.run("runtimes")
        client.environ["CHECKLY_API_KEY"] = "cu_" + "0" * 40
        refused = await client.run("whoami", code=1)
        assert "Authentication failed" in refused
        assert "0" * 40 not in refused


async def test_variables_are_added_listed_changed_removed_and_pulled_whole(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path) as scene:
        client = scene.client("template")
        for number in range(12):
            body = {"key": f"NUMBER_{number}", "value": str(number)}
            await scene.ask("POST", "/v1/variables", body)
        await client.run("env", "add", "COLOUR", "red", "--locked")
        await client.run("env", "add", "TOKEN", "hidden", "--secret")
        await client.run("env", "update", "COLOUR", "blue")
        await client.run("env", "rm", "NUMBER_3", "--force")
        listed = await client.run("env", "ls")
        assert "COLOUR=blue" in listed
        assert "NUMBER_3=" not in listed
        await client.run("env", "pull", "--force")
        pulled = (client.project / ".env").read_text()
        assert len(re.findall(r"^NUMBER_\d+=", pulled, re.MULTILINE)) == 11
        assert "COLOUR=blue" in pulled
        assert "hidden" not in pulled


async def test_checks_are_listed_by_pages_filtered_shown_and_deleted(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path) as scene:
        client = scene.client("template")
        checks = [await a_check(scene, f"Check {one}", tags=[f"no-{one}"]) for one in range(30)]
        assert "Showing 26-30 of 30 checks (page 2/2)" in await client.run(
            "checks", "list", "--page", "2"
        )
        filtered = await client.run("checks", "list", "--tag", "no-7")
        assert checks[7] in filtered
        assert "Showing 1-1 of 1 checks" in filtered
        assert "passing" not in filtered, "none of them has run"
        assert "Check 7" in await client.run("checks", "get", checks[7])
        assert "Showing 1-25 of 30" in await client.run("checks", "stats")
        assert "confirmation_required" in await client.run("checks", "delete", checks[7], code=2)
        await client.run("checks", "delete", checks[7], "--force")
        assert "There is no check" in await client.run("checks", "get", checks[7], code=1)


async def test_a_project_of_the_template_and_one_of_every_resource_are_valid(
    tmp_path: Path,
) -> None:
    async with a_client_scene(tmp_path) as scene:
        for project in ("template", "everything"):
            client = scene.client(project)
            assert "Your project is valid" in await client.run("validate")
