"""The secret that keys are stored with: made once, kept apart from the database, held to it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from service.accounts.keys import digest_key
from service.app import running
from service.commands import at_console
from service.db.migrate import SCRIPTS
from service.db.sqlite import open_sqlite
from service.errors import SettingsError
from service.pepper import FILE, pepper_of
from service.settings import Settings
from tests.servers.public_api import listening
from tests.servers.service import HELLO


def settings(folder: Path, pepper: str | None = None) -> Settings:
    return Settings(data_dir=folder, database=folder / "service.db", key_pepper=pepper)


async def start(chosen: Settings) -> None:
    async with running(chosen):
        pass


async def test_the_first_start_makes_one_for_its_owner_alone(tmp_path: Path) -> None:
    await start(settings(tmp_path))
    file = tmp_path / FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(file.read_bytes()) == 43
    kept = file.read_bytes()
    await start(settings(tmp_path))
    assert file.read_bytes() == kept
    assert kept not in (tmp_path / "service.db").read_bytes()


async def test_a_setting_takes_its_place(tmp_path: Path) -> None:
    await start(settings(tmp_path, "p" * 40))
    assert not (tmp_path / FILE).exists()
    assert pepper_of(settings(tmp_path, "p" * 40)).secret == b"p" * 40


async def test_another_pepper_is_refused_before_every_key_would_be(tmp_path: Path) -> None:
    await start(settings(tmp_path))
    with pytest.raises(SettingsError, match="KEY_PEPPER is not the one"):
        await start(settings(tmp_path, "p" * 40))
    (tmp_path / FILE).write_text("hunter2")
    with pytest.raises(SettingsError, match="restore that file") as caught:
        await start(settings(tmp_path))
    assert "hunter2" not in str(caught.value)


async def test_an_empty_file_is_no_pepper(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("\n")
    with pytest.raises(SettingsError, match=f"{FILE} is empty; restore what it held"):
        pepper_of(settings(tmp_path))


async def test_a_pepper_that_cannot_be_kept_is_said(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(SettingsError, match="cannot be used"):
        pepper_of(settings(tmp_path))


EARLIER = (
    "account VALUES ('a', 'Default', 1)",
    "api_key VALUES ('k', 'a', 'first start', :api, 'cu_****', 1, NULL)",
    """private_location (id, account_id, name, slug_name, icon, created_ms)
    VALUES ('l', 'a', 'Default', 'default', 'location', 1)""",
    "location_key VALUES ('p', 'l', :location, 'pl_****', 1, NULL)",
)


def make_earlier_database(connection: Connection, keys: Sequence[str]) -> None:
    """As the last version without a pepper left it: keys as plain hashes."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    command.upgrade(config, "0004")
    hashes = dict(zip(("api", "location"), map(digest_key, keys), strict=True))
    for row in EARLIER:
        connection.execute(text(f"INSERT INTO {row}"), hashes)


async def opening(chosen: Settings, keys: Sequence[str]) -> list[int]:
    """What a start answers to an API key and to a location's key."""
    hello = {**HELLO, "slots": {"uptime": 1}}
    asked = (("GET", "/v1/checks", None), ("POST", "/agent/v1/hello", hello))
    async with (
        running(chosen) as service,
        listening(service.app) as url,
        aiohttp.ClientSession() as http,
    ):
        answers = []
        for key, (method, path, body) in zip(keys, asked, strict=True):
            headers = {"authorization": f"Bearer {key}", "x-agent-id": "agent-1"}
            async with http.request(method, url + path, json=body, headers=headers) as answer:
                answers.append(answer.status)
        return answers


async def test_keys_of_an_earlier_version_go_on_opening(tmp_path: Path) -> None:
    keys = ("cu_" + "a" * 43, "pl_" + "b" * 43)
    database = open_sqlite(tmp_path / "service.db")
    await database.write(lambda c: make_earlier_database(c, keys))
    await database.close()
    chosen = settings(tmp_path)
    assert await opening(chosen, keys) == [200, 200]
    assert await opening(chosen, keys) == [200, 200]
    assert await opening(chosen, [key + "x" for key in keys]) == [401, 401]
    stored = (tmp_path / "service.db").read_bytes()
    pepper = pepper_of(chosen)
    for key in keys:
        assert digest_key(key) not in stored
        assert pepper.as_key(key).digest in stored


async def test_commands_ask_to_start_the_service_with_an_earlier_database_first(
    tmp_path: Path,
) -> None:
    database = open_sqlite(tmp_path / "service.db")
    await database.write(lambda c: make_earlier_database(c, ("cu_", "pl_")))
    await database.close()
    with pytest.raises(SettingsError, match="start this version's service with it once"):
        await asyncio.to_thread(at_console, settings(tmp_path), lambda console: console.now_ms)
    assert not (tmp_path / FILE).exists()
