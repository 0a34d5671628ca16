"""`picket export` writes files that say what the service has, and no secret."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from picket.__main__ import main
from picket.check_file.load import read_documents
from picket.code.applying.differences import find_changes
from picket.code.applying.stored import Stored
from picket.code.exporting.export_command import to_yaml
from picket.code.exporting.written_documents import SECRET_CONFIG
from picket.code.reading.documents import Kind, read_project
from picket.code.reading.env_values import EnvValues
from picket.code.reading.linking import Linked, link
from picket.errors import ExitCode
from picket.service_access import use_api
from service.alert_channels.kinds.registry import KINDS
from tests.builders.check_bodies import check_body
from tests.builders.projects import body, deployed, ref, resource, url_check
from tests.builders.whole_accounts import SECRET, fill_account
from tests.servers.public_api import PublicApi, serve_public_api

SERVICE = Kind.STATUS_PAGE_SERVICE.resource_type


async def export(api: PublicApi, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("SERVICE_URL", api.url)
    monkeypatch.setenv("API_KEY", api.alice.secrets.api_key)
    return await asyncio.to_thread(main, ["export", str(folder)])


def read(folder: Path, *, keep_missing: bool = True) -> Linked:
    project = EnvValues({}, keep_missing=keep_missing).fill(read_project((folder,)))
    return link(project, {})


async def test_the_files_say_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checks"
    async with serve_public_api(tmp_path) as api:
        await fill_account(api.alice)
        assert await export(api, folder, monkeypatch) == ExitCode.OK
        linked = read(folder)
        environ = {"SERVICE_URL": api.url, "API_KEY": api.alice.secrets.api_key}
        async with use_api(environ, tmp_path) as client:
            stored = Stored(client)
            named = [one for one in linked.resources if one.type in ("check-group", SERVICE)]
            names = {str(one.physical_id): one.logical_id for one in named}
            compared = 0
            for one in linked.resources:
                if one.document is None or one.payload is None:
                    continue
                files = linked.shared_files
                if numbers := one.payload.get("dependencies"):
                    one.payload["dependencies"] = [files[number] for number in numbers]
                found = await stored.read(one.type, one.physical_id)
                assert found is not None
                assert find_changes(one.payload, found, names) == [], one.key
                compared += 1
    assert compared == 26
    assert {one.type for one in linked.resources} >= {kind.resource_type for kind in Kind}


async def test_no_secret_is_in_the_files_and_all_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "checks"
    async with serve_public_api(tmp_path) as api:
        await fill_account(api.alice)
        await export(api, folder, monkeypatch)
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert len(texts) > 20
    assert not [text for text in texts if SECRET in text or "s3cr3t" in text]
    listed = (folder / ".env.example").read_text()
    named = EnvValues({})
    with pytest.raises(Exception, match="is not set"):
        named.fill(read_project((folder,)))
    assert listed == "".join(f"{name}=\n" for name in sorted(named.missing))
    assert f".env.example ({len(named.missing)}) before" in capsys.readouterr().out


async def test_scripts_stand_beside_their_checks_at_their_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checks"
    async with serve_public_api(tmp_path) as api:
        await fill_account(api.alice)
        await export(api, folder, monkeypatch)
    assert "await request.get" in (folder / "checks/order/e2e/order.ts").read_text()
    assert (folder / "checks/order/lib/shop.ts").read_text() == "export const shop = `${1}`;\n"
    assert "await page.goto" in (folder / "checks/shop/script.ts").read_text()
    assert (folder / "groups/shop.setup.js").read_text() == "// before\nawait 0\n"


async def test_a_folder_with_files_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    async with serve_public_api(tmp_path) as api:
        assert await export(api, tmp_path, monkeypatch) == ExitCode.BAD_INPUT
    assert f"{tmp_path} is not empty; name a new folder" in capsys.readouterr().err


def test_the_secrets_of_channels_are_those_of_the_service() -> None:
    known = {kind.value: one.secret_fields for kind, one in KINDS.items() if one.secret_fields}
    assert known == SECRET_CONFIG


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
NUMBER_LIKE = st.from_regex(r"[-+]?[0-9._]{0,4}(e[0-9]{1,2})?[:0-9]{0,4}", fullmatch=True)


@given(st.dictionaries(st.text() | NUMBER_LIKE, PLAIN | NUMBER_LIKE, min_size=1))
def test_what_is_written_is_read_as_the_same(document: dict[str, object]) -> None:
    (found,) = read_documents(to_yaml(document))
    assert found[1] == document


async def test_what_projects_own_is_left_out_and_the_rest_is_applied_without_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "checks"
    async with serve_public_api(tmp_path) as api:
        group = {**resource("check-group", "web", {"name": "Web", "v": 2})}
        diff = await deployed(api.alice, body(group, url_check("home", groupId=ref("web"))))
        own = {"groupId": diff["web"]["physicalId"], "privateLocations": ["default"]}
        await api.alice.post("/v1/checks/url", check_body("url", name="Cart", **own))

        assert await export(api, folder, monkeypatch) == ExitCode.OK
        said = capsys.readouterr().out
        applied = await asyncio.to_thread(main, ["apply", str(folder), "--dry-run"])

    assert [path.name for path in folder.rglob("checks/*.yaml")] == ["cart.yaml"]
    assert list(folder.rglob("groups/*.yaml")) == []
    assert "The project Shop has 2 resources, which are left out" in said
    assert f"Cart: it uses the group {own['groupId']}, which is left out" in said
    assert applied == ExitCode.OK
