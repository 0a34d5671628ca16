"""The established command line deploys projects, behind the address alone."""

import asyncio
import signal
from pathlib import Path
from typing import Any

from tests.clients.command_line import CommandLine
from tests.clients.scene import ClientScene, a_client_scene
from tests.servers.fault_proxy import SERVER, Fault, serve_fault_proxy

CUT_WITHIN = Fault(cut_after=300, of=SERVER)
"""The head of an answer arrives, and its body breaks off."""
TEMPLATE = (
    "EmailAlertChannel: on-call-mail",
    "BrowserCheck: __checks__/homepage.spec.ts",
    "ApiCheck: books-api",
    "HeartbeatMonitor: newsletter",
    "UrlMonitor: shop-url",
    "CheckGroupV2: website",
)
KINDS = (
    *("checks", "check-groups", "alert-channels", "private-locations"),
    *("maintenance-windows", "status-pages", "status-pages/services"),
)


async def everything_there(scene: ClientScene) -> dict[str, Any]:
    """What the account has, as its API shows it."""
    found = {}
    for kind in KINDS:
        paged = kind != "private-locations"
        found[kind] = await scene.ask("GET", f"/v1/{kind}{'?limit=100' if paged else ''}")
    return found


def section(printed: str, title: str) -> list[str]:
    """The lines of a diff under a title."""
    _, _, rest = printed.partition(f"\n{title}:\n")
    lines = rest.split("\n\n")[0].splitlines()
    return sorted(line.strip() for line in lines)


def change(client: CommandLine, file: str, before: str, after: str) -> None:
    path = client.project / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


async def test_a_project_of_the_template_is_deployed_changed_and_destroyed(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path) as scene:
        client = scene.client("template")
        preview = await client.run("deploy", "--preview")
        assert section(preview, "Create") == sorted(TEMPLATE)
        assert await scene.ask("GET", "/v1/checks") == []
        first = await client.run("deploy", "--force", "--output")
        assert section(first, "Create") == sorted(TEMPLATE)
        assert f"Send the weekly newsletter is {scene.url}/ping/" in first
        made = await everything_there(scene)
        second = await client.run("deploy", "--force", "--output", "--verbose")
        assert "Create:" not in second
        assert await everything_there(scene) == made
        change(client, "__checks__/url.check.ts", "name: 'Shop'", "name: 'The shop'")
        (client.project / "__checks__/heartbeat.check.ts").unlink()
        asked = await client.run("deploy", code=2)
        assert "confirmation_required" in asked
        third = await client.run("deploy", "--force", "--output")
        assert section(third, "Delete") == ["Check: newsletter"]
        names = {one["name"] for one in await scene.ask("GET", "/v1/checks")}
        assert names == {"Books API", "homepage.spec.ts", "The shop"}
        assert "confirmation_required" in await client.run("destroy", code=2)
        await client.run("destroy", "--force")
        assert await scene.ask("GET", "/v1/checks") == []
        assert await scene.ask("GET", "/v1/alert-channels") == []
        assert "successfully deleted" in await client.run("destroy", "--force")


async def test_a_project_of_every_resource_is_deployed_once_and_kept_when_asked(
    tmp_path: Path,
) -> None:
    async with a_client_scene(tmp_path) as scene:
        client = scene.client("everything")
        first = await client.run("deploy", "--force", "--output")
        assert len(section(first, "Create")) == 29
        made = await everything_there(scene)
        assert {len(made[kind]) for kind in ("checks", "alert-channels")} == {9, 10}
        second = await client.run("deploy", "--force", "--output")
        assert len(section(second, "Update and Unchanged")) == 29
        assert await everything_there(scene) == made
        await client.run("destroy", "--force", "--preserve-resources")
        kept = await everything_there(scene)
        assert [one["id"] for one in kept["checks"]] == [one["id"] for one in made["checks"]]


async def test_a_project_and_its_resources_may_have_slashes_in_their_logical_ids(
    tmp_path: Path,
) -> None:
    async with a_client_scene(tmp_path) as scene:
        client = scene.client("template")
        change(client, "checkly.config.ts", "'shop-monitoring'", "'shop/monitoring'")
        change(client, "__checks__/url.check.ts", "'shop-url'", "'shop/url'")
        assert "Successfully deployed" in await client.run("deploy", "--force")
        second = await client.run("deploy", "--force", "--output")
        assert "UrlMonitor: shop/url" in section(second, "Update and Unchanged")
        await client.run("destroy", "--force")
        assert await scene.ask("GET", "/v1/checks") == []


async def test_two_hundred_checks_are_deployed_at_once_and_deleted_with_their_project(
    tmp_path: Path,
) -> None:
    async with a_client_scene(tmp_path) as scene:
        client = scene.client("template")
        (client.project / "__checks__/many.check.ts").write_text(MANY)
        assert "Successfully deployed" in await client.run("deploy", "--force")
        listed = await client.run("checks", "list", "--limit", "100", "--page", "3")
        assert "of 204 checks (page 3/3)" in listed
        await client.run("destroy", "--force")
        assert await scene.ask("GET", "/v1/checks") == []


MANY = """
import { UrlMonitor } from 'checkly/constructs'

for (let number = 0; number < 200; number++) {
  new UrlMonitor(`many-${number}`, {
    name: `Many ${number}`,
    request: { url: `${process.env.SHOP_URL}/?${number}` },
  })
}
"""


async def test_what_cannot_be_deployed_is_named_with_its_file_and_nothing_is(
    tmp_path: Path,
) -> None:
    async with a_client_scene(tmp_path) as scene:
        client = scene.client("template")
        for file, code, told in REFUSED:
            (client.project / file).write_text(code)
            refused = await client.run("deploy", "--force", code=1)
            said = " ".join(refused.split())
            assert told in said
            (client.project / file).unlink()
        assert await scene.ask("GET", "/v1/checks") == []


SSL = """
import { SslMonitor } from 'checkly/constructs'

new SslMonitor('certificate', {
  name: 'Certificate',
  request: { hostname: 'shop.example', port: 443, sslConfig: {} },
})
"""


DASHBOARD = """
import { Dashboard } from 'checkly/constructs'

new Dashboard('wall', { header: 'Shop', tags: ['mac'], customUrl: 'shop-wall' })
"""
REFUSED = (
    (
        "__checks__/ssl.check.ts",
        SSL,
        'check "certificate" (__checks__/ssl.check.ts): "checkType" is SSL, and checks of this',
    ),
    (
        "__checks__/wall.check.ts",
        DASHBOARD,
        'dashboard "wall" (__checks__/wall.check.ts): dashboards are not supported',
    ),
)


async def test_a_broken_event_stream_is_followed_again_to_the_end(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path) as scene, serve_fault_proxy() as proxy:
        proxy.upstream = int(scene.url.rpartition(":")[2])
        client = scene.client("template", url=proxy.url)
        broken = proxy.arm(CUT_WITHIN, when=b"/events", times=2)
        assert "Successfully deployed" in await client.run("deploy", "--force")
        assert broken.struck == 2


async def test_a_deployment_waits_for_one_that_goes_on(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path) as scene:
        clients = [scene.client("template", copy=number) for number in range(3)]
        for client in clients:
            (client.project / "__checks__/many.check.ts").write_text(MANY)
        printed = await asyncio.gather(*(one.run("deploy", "--force") for one in clients))
        assert all("Successfully deployed" in one for one in printed)
        assert len(await scene.ask("GET", "/v1/checks?limit=100&page=3")) == 4


async def test_ctrl_c_leaves_all_of_a_deployment_or_nothing(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path) as scene:
        client = scene.client("template")
        (client.project / "__checks__/many.check.ts").write_text(MANY)
        running = await client.start("deploy", "--force")
        await running.says("Deploying project")
        running.process.send_signal(signal.SIGINT)
        assert (await running.end()).code != 0
        checks = await scene.ask("GET", "/v1/checks?limit=100")
        assert len(checks) in (0, 100)
        assert "Successfully deployed" in await client.run("deploy", "--force")
