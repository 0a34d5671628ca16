"""`picket apply` against a service: what it deploys, says and leaves alone."""

import asyncio
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from picket.__main__ import main
from picket.code.applying.apply_command import CHANGES
from picket.code.reading.documents import Kind
from picket.errors import ExitCode
from service.projects import actions as projects
from tests.builders.code_projects import CHECK, OTHERS, write_project
from tests.builders.projects import await_end
from tests.builders.whole_accounts import SECRET, fill_account
from tests.servers.public_api import PublicApi, serve_public_api

TOKEN = "correct-horse-battery"
ALL_NEW = "10 to create, 0 to change, 0 to delete."
NOTHING = "Nothing to change."


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who deploys the project in a folder."""

    api: PublicApi
    folder: Path
    capsys: pytest.CaptureFixture[str]

    async def run(self, *words: str) -> tuple[int, list[str]]:
        """The exit code, and the lines of both outputs."""
        code = await asyncio.to_thread(main, list(words))
        said = self.capsys.readouterr()
        return code, [*said.out.splitlines(), *said.err.splitlines()]

    async def apply(self, *options: str, path: str = "") -> tuple[int, list[str]]:
        return await self.run("apply", str(self.folder / path), *options)

    async def names(self, kind: str = "checks") -> set[str]:
        answer = await self.api.alice.get(f"/v1/{kind}?limit=100")
        return {one["name"] for one in answer.body}

    async def check(self, name: str) -> dict[str, Any]:
        answer = await self.api.alice.get(f"/v1/checks?search={name}")
        (found,) = answer.body
        return dict(found)


@pytest.fixture
async def person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> AsyncIterator[Person]:
    async with serve_public_api(tmp_path) as api:
        monkeypatch.setenv("SERVICE_URL", api.url)
        monkeypatch.setenv("API_KEY", api.alice.secrets.api_key)
        monkeypatch.setenv("SHOP_TOKEN", TOKEN)
        yield Person(api, write_project(tmp_path / "checks"), capsys)


async def test_a_dry_run_says_what_would_be_created_and_creates_nothing(person: Person) -> None:
    code, said = await person.apply("--dry-run", "--exit-code")
    assert code == CHANGES
    assert "+ check Home (home.yaml)" in said
    assert "+ alert-channel ops-mail (others.yaml:10)" in said
    assert said[-1] == ALL_NEW
    assert (await person.apply("--dry-run"))[0] == ExitCode.OK
    assert await person.names() == set()


async def test_all_kinds_are_deployed_and_the_second_time_changes_nothing(person: Person) -> None:
    assert (await person.apply())[0] == ExitCode.OK
    home = await person.check("Home")
    assert (home["frequency"], home["privateLocations"]) == (5, ["cellar", "default"])
    assert home["request"]["assertions"][0]["target"] == "200"
    assert home["triggerIncident"]["severity"] == "MAJOR"
    (subscription,) = home["alertChannelSubscriptions"]
    assert subscription["activated"]
    order = await person.check("Order")
    assert order["groupId"] == home["groupId"] is not None
    assert order["dependencies"] == [
        {"path": "lib/shop.ts", "content": "export const shop = 'shop';\n"}
    ]
    assert await person.names("maintenance-windows") == {"Nightly"}
    page = (await person.api.alice.get("/status-pages/shop.json")).body
    assert page["cards"][0]["services"][0]["name"] == "Checkout"
    assert await person.apply("--dry-run", "--exit-code") == (ExitCode.OK, [NOTHING])
    assert await person.apply() == (ExitCode.OK, [NOTHING])


async def test_changes_are_shown_with_old_and_new_values_and_then_made(person: Person) -> None:
    await person.apply()
    write_project(
        person.folder,
        home=CHECK.replace("frequency: 5", "frequency: 10").replace("cellar, default", "default"),
        others=OTHERS.replace("tags: [shop]\n", "").replace("NUMBER: 7", "NUMBER: 8"),
    )
    code, said = await person.apply()
    assert code == ExitCode.OK
    assert said[:-1] == [
        "~ check Home (home.yaml)",
        "    frequency: 5 → 10",
        '    privateLocations: ["cellar", "default"] → ["default"]',
        "~ check-group Shop (others.yaml:2)",
        "    environmentVariables[1].value: changed (not shown)",
        '    tags: ["shop"] → default',
        "0 to create, 2 to change, 0 to delete.",
    ]
    home = await person.check("Home")
    assert (home["frequency"], home["privateLocations"]) == (10, ["default"])


async def test_what_is_set_elsewhere_goes_back_to_what_the_files_say(person: Person) -> None:
    await person.apply()
    home = await person.check("Home")
    path = f"/v1/checks/url/{home['id']}"
    await person.api.alice.put(path, {"muted": True, "frequency": 60})
    _, said = await person.apply()
    assert {"    frequency: 60 → 5", "    muted: true → default"} <= set(said)
    home = await person.check("Home")
    assert (home["frequency"], home["muted"]) == (5, False)


async def test_what_is_not_in_the_files_is_kept_in_the_project_until_it_is_pruned(
    person: Person,
) -> None:
    await person.apply()
    (person.folder / "order.yaml").unlink()
    kept = "  check order is not in the files; kept (--prune deletes it)"
    assert await person.apply() == (ExitCode.OK, [kept, NOTHING])
    assert await person.apply("--dry-run", "--exit-code") == (ExitCode.OK, [kept, NOTHING])
    assert await person.names() == {"Home", "Order"}
    code, said = await person.apply("--prune", "--dry-run", "--exit-code")
    assert (code, said) == (CHANGES, ["- check order", "0 to create, 0 to change, 1 to delete."])
    await person.apply("--prune")
    assert await person.names() == {"Home"}


async def test_a_channel_that_a_check_does_not_name_any_more_hears_of_it_no_more(
    person: Person,
) -> None:
    await person.apply()
    write_project(
        person.folder,
        home=CHECK.replace("channels: [ops-mail]\n", ""),
        others=OTHERS.replace("checks: [Home]\n", ""),
    )
    _, said = await person.apply()
    assert said[0] == "- subscription ops-mail#check#home"
    assert (await person.check("Home"))["alertChannelSubscriptions"] == []


async def test_a_part_of_a_project_is_deployed_by_itself(person: Person) -> None:
    await person.apply()
    write_project(person.folder, order="type: URL\nname: Order\nrequest: {url: 'http://a/'}\n")
    (person.folder / "sub").mkdir()
    shutil.move(person.folder / "home.yaml", person.folder / "sub/other.yaml")
    code, said = await person.apply(path="order.yaml")
    assert code == ExitCode.FAILED, said
    assert 'check "order" (order.yaml): "checkType" is URL' in " ".join(said)
    code, said = await person.apply("--prune", path="others.yaml")
    assert (code, said) == (
        ExitCode.BAD_INPUT,
        ["picket: --prune deletes what is not in the files; give the folder of the whole project"],
    )


async def test_nothing_is_deployed_if_one_document_does_not_fit(person: Person) -> None:
    write_project(person.folder, others=OTHERS.replace("2027-01-01T03", "2026-01-01T03"))
    code, said = await person.apply()
    assert code == ExitCode.FAILED
    assert 'maintenance-window "others#nightly" (others.yaml:31)' in " ".join(said)
    assert await person.names() == set()


async def test_a_check_without_a_location_is_told_the_field_that_documents_have(
    person: Person,
) -> None:
    check = "type: TCP\nname: N\nrequest: {hostname: a, port: 1}\n"
    grouped = f"{check}group: g\n---\nkind: group\nid: g\nname: G\n"
    for text, title in ((check, '"n" (n.yaml)'), (grouped, '"n#n" (n.yaml:1)')):
        (person.folder / "n.yaml").write_text(text)
        code, said = await person.apply(path="n.yaml")
        why = "it has no location; name one in privateLocations, here or in its group"
        assert (code, said) == (ExitCode.FAILED, [f"picket: check {title}: {why}"])


async def test_no_secret_is_printed(person: Person) -> None:
    steps = "type: API\nname: Cart\nprivateLocations: [default]\nrequest:\n"
    request = (
        f"{steps}  url: http://a/\n  basicAuth: {{ username: u, password: '${{SHOP_TOKEN}}' }}\n"
    )
    (person.folder / "cart.yaml").write_text(request)
    said = [await person.apply("--dry-run"), await person.apply(), await person.apply()]
    (person.folder / "cart.yaml").write_text(request.replace("password: '$", "password: 'x$"))
    said += [await person.apply()]
    (person.folder / "cart.yaml").write_text(
        request.replace("http://a/", "ftp://${SHOP_TOKEN}/").replace("basicAuth", "basicAth")
    )
    said += [await person.apply(), await person.run("test", str(person.folder), "--here")]
    assert said[3][1][1] == "    request.basicAuth.password: changed (not shown)"
    assert [code for code, _ in said[4:]] == [ExitCode.BAD_INPUT] * 2
    assert TOKEN not in str(said)


async def test_an_address_with_a_value_of_the_environment_is_not_shown_when_it_changes(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"http://127.0.0.1:9/{'a' * 60}?token=${{SHOP_TOKEN}}"
    write_project(person.folder, home=CHECK.replace("http://127.0.0.1:9/", address))
    await person.apply()
    monkeypatch.setenv("SHOP_TOKEN", "battery-horse-correct")
    code, said = await person.apply("--dry-run")
    assert code == ExitCode.OK
    assert "    request.url: changed (not shown)" in said
    assert not any("token=" in line for line in said)


async def test_secrets_that_are_not_set_stay_as_they_are(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await person.apply()
    monkeypatch.delenv("SHOP_TOKEN")
    code, said = await person.apply()
    assert code == ExitCode.BAD_INPUT
    assert said[0] == "picket: order.yaml: SHOP_TOKEN is not set"
    assert await person.apply("--keep-secrets") == (ExitCode.OK, [NOTHING])
    assert (await person.check("Order"))["environmentVariables"][0]["value"] == TOKEN


async def test_a_wrong_key_and_a_wrong_address_are_told_apart(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "cu_wrong")
    code, said = await person.apply()
    assert (code, said) == (
        ExitCode.KEY_REFUSED,
        [f"picket: the service at {person.api.url} refuses the key"],
    )
    monkeypatch.setenv("SERVICE_URL", "http://127.0.0.1:9")
    assert (await person.apply())[0] == ExitCode.OWN_FAULT


async def test_another_deployment_of_the_project_is_waited_for(person: Person) -> None:
    api, account = person.api, person.api.alice.secrets.account_id

    def begin(connection: Any) -> Any:
        now_ms = api.backend.clock.now_ms(connection)
        return projects.begin(connection, account, "shop", now_ms=now_ms)

    def cancel(connection: Any) -> None:
        now_ms = api.backend.clock.now_ms(connection)
        projects.cancel(connection, other, now_ms=now_ms)

    other = await api.database.write(begin)
    applying = asyncio.create_task(person.apply())
    said = ""
    while "Another deployment of the project is going on; waiting for it." not in said:
        await asyncio.sleep(0.05)
        assert not applying.done()
        said += person.capsys.readouterr().out
    await api.database.write(cancel)
    code, lines = await applying
    assert code == ExitCode.OK
    assert f"Deployed to {api.url}." in lines
    assert await person.names() == {"Home", "Order"}


async def test_ctrl_c_cancels_the_deployment(person: Person) -> None:
    check = "type: TCP\nname: N\nprivateLocations: [default]\nrequest: {hostname: a, port: 1}\n"
    many = "---\n".join(check.replace(": N", f": N{number}") for number in range(800))
    (person.folder / "many.yaml").write_text(many)
    project = {"logicalId": "shop", "name": "Shop"}
    await person.api.alice.post("/next/projects", project)
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "picket",
        "apply",
        str(person.folder),
        stdout=asyncio.subprocess.DEVNULL,
    )
    path = "/v1/projects/shop/deployments"
    while not (await person.api.alice.get(path)).body:
        assert running.returncode is None
        await asyncio.sleep(0.02)
    running.send_signal(signal.SIGINT)
    assert await running.wait() == ExitCode.INTERRUPTED
    (ended,) = (await person.api.alice.get(path)).body
    assert ended["status"] == "CANCELLED"
    assert await person.names() == set()


async def test_an_export_applies_without_a_change_and_takes_over_what_exists(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill_account(person.api.alice)
    before = await person.names()
    folder = tmp_path / "exported"
    assert (await person.run("export", str(folder)))[0] == ExitCode.OK
    dry = ("--dry-run", "--keep-secrets", "--exit-code")
    joining = "  26 that exist become part of the project as they are"
    assert await person.run("apply", str(folder), *dry) == (ExitCode.OK, [joining, NOTHING])
    assert (await person.run("apply", str(folder), "--keep-secrets"))[0] == ExitCode.OK
    assert await person.run("apply", str(folder), *dry) == (ExitCode.OK, [NOTHING])
    assert await person.names() == before
    members = (await person.api.alice.get("/v1/projects/default")).body["resources"]
    assert {one["type"] for one in members} >= {kind.resource_type for kind in Kind}
    ids = {one["id"] for one in (await person.api.alice.get("/v1/checks?limit=100")).body}
    assert {one["physicalId"] for one in members if one["type"] == "check"} == ids


async def test_an_export_makes_the_same_in_an_empty_account(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill_account(person.api.alice)
    folder, again = tmp_path / "exported", tmp_path / "again"
    await person.run("export", str(folder))
    for name in (folder / ".env.example").read_text().split():
        value = f"https://hook.test/{SECRET}" if "URL" in name else SECRET
        monkeypatch.setenv(name.removesuffix("="), value)
    charlie = await person.api.another_user("Charlie")
    answer = await person.api.alice.get("/v1/status-pages")
    for page in answer.body["entries"]:  # its address is unique in the whole installation
        await person.api.alice.delete(f"/v1/status-pages/{page['id']}")
    monkeypatch.setenv("API_KEY", charlie.secrets.api_key)
    code, said = await person.run("apply", str(folder))
    assert code == ExitCode.OK, said
    assert await person.run("apply", str(folder)) == (ExitCode.OK, [NOTHING])
    (project,) = (await charlie.get("/v1/projects")).body
    path = f"/v1/projects/{project['logicalId']}?preserveResources=true"
    await await_end(charlie, (await charlie.delete(path)).body)
    await person.run("export", str(again))
    assert texts(again) == texts(folder)


def texts(folder: Path) -> dict[str, str]:
    """Files without what differs between accounts: ids."""
    found = {}
    for path in folder.rglob("*.*"):
        if path.is_file() and path.name != "picket.yaml":
            lines = path.read_text().splitlines()
            kept = [line for line in lines if not line.startswith("physicalId:")]
            found[str(path.relative_to(folder))] = "\n".join(kept)
    return found


async def test_a_suite_is_packed_and_sent_once(person: Person) -> None:
    suite = person.folder / "e2e"
    (suite / "tests").mkdir(parents=True)
    (suite / "playwright.config.ts").write_text("export default {};\n")
    (suite / "package-lock.json").write_text('{"lockfileVersion": 3, "packages": {}}')
    (suite / "tests/data.yaml").write_text("no: check\n")
    check = "type: PLAYWRIGHT\nname: Suite\nprivateLocations: [default]\nsuiteFolder: e2e\n"
    (person.folder / "suite.yaml").write_text(check)
    assert (await person.apply())[0] == ExitCode.OK
    sha256 = (await person.check("Suite"))["codeBundlePath"]
    assert (await person.api.alice.get(f"/v1/code-bundles/{sha256}")).status == 200
    assert await person.apply() == (ExitCode.OK, [NOTHING])
    (suite / "playwright.config.ts").write_text("export default { retries: 1 };\n")
    _, said = await person.apply()
    assert said[0] == "~ check Suite (suite.yaml)"
    assert said[1].startswith(f'    codeBundlePath: "{sha256}" → "')


async def test_a_changed_file_is_applied_again_by_a_watch(person: Person) -> None:
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "picket", "apply", "--watch", str(person.folder)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert running.stdout is not None
    try:
        while b"Watching for changes; Ctrl-C ends it." not in await running.stdout.readline():
            pass
        write_project(person.folder, home=CHECK.replace("frequency: 5", "frequency: 10"))
        said = [await running.stdout.readline()]
        while b"Watching" not in said[-1]:
            said.append(await running.stdout.readline())
    finally:
        running.send_signal(signal.SIGINT)
        code = await running.wait()
    assert b"    frequency: 5 \xe2\x86\x92 10\n" in said
    assert code == ExitCode.INTERRUPTED
    assert (await person.check("Home"))["frequency"] == 10


async def test_what_is_left_to_do_by_hand_is_said_once(person: Person) -> None:
    times = "{period: 1, periodUnit: hours, grace: 1, graceUnit: hours}"
    beat = f"type: HEARTBEAT\nname: Beat\nheartbeat: {times}\n"
    (person.folder / "beat.yaml").write_text(beat)
    _, said = await person.apply()
    _, again = await person.apply()
    ping_url = (await person.check("Beat"))["heartbeat"]["pingUrl"]

    assert f"Beat: let the job ping {ping_url}" in said
    assert [line for line in said if "has no agent yet; create a key" in line]
    assert again == [NOTHING]
