import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import update
from structlog.testing import capture_logs

from service.accounts.keys import Pepper
from service.app import running
from service.checks import actions as checks
from service.checks import changes as check_changes
from service.checks import secrets as check_sealing
from service.checks.types.api import ApiCheckWrite
from service.db.engine import Database
from service.db.ids import new_id
from service.db.sqlite import open_sqlite
from service.db.tables.checks import check_, check_group
from service.db.tables.job_inputs import client_certificate, variable
from service.db.tables.locations import private_location
from service.db.tables.metadata import metadata
from service.errors import SettingsError
from service.groups import api as group_changes
from service.groups import secrets as group_sealing
from service.groups import store as group_store
from service.groups.schemas import GroupWrite
from service.locations import actions as locations
from service.locations import secrets as location_sealing
from service.locations import store as location_store
from service.locations.model import LocationWrite
from service.settings import PostgresUrl, Settings
from service.variables import actions, store
from service.variables.model import Owner
from service.variables.schemas import EnvironmentVariable, VariableWrite
from service.variables.secrets import ENCRYPTED
from service.vault.encryption import HEAD_BYTES, DecryptionError, Scope, Vault
from service.vault.startup import FILE, open_vault
from tests.builders.certificates import a_client_certificate
from tests.builders.check_bodies import check_body
from tests.builders.engines import ON_POSTGRESQL
from tests.builders.groups import group_body
from tests.builders.vaults import MASTER_KEY
from tests.builders.world import new_account

NEW_KEY = bytes(32)
PASSWORD = "s3cr3t-passw0rd"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = open_sqlite(tmp_path / "service.db")
    await opened.write(metadata.create_all)
    yield opened
    await opened.close()


def settings(folder: Path, *keys: bytes) -> Settings:
    return Settings(data_dir=folder, database=folder / "service.db", master_keys=keys)


def files(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


async def seal(database: Database, vault: Vault) -> tuple[str, str]:
    """A secret of an account, and a certificate; the account's id and the certificate's."""
    body = VariableWrite(key="TOKEN", value="s3cr3t", secret=True)
    account_id = await database.write(new_account)
    await database.write(lambda c: actions.create(c, Scope(account_id, 1, vault), body))
    row = await database.write(lambda c: a_client_certificate(c, account_id, vault))
    return account_id, row.id


async def test_a_first_start_makes_a_key_that_only_its_owner_reads(
    database: Database, tmp_path: Path
) -> None:
    vault = await open_vault(settings(tmp_path), database)
    file = tmp_path / "master-key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    sealed = vault.encrypt("s3cr3t", ("here",))
    again = await open_vault(settings(tmp_path), database)
    assert again.decrypt(sealed, ("here",)) == "s3cr3t"
    assert "master-key" in files(tmp_path)
    assert not any(name.startswith("master-key.") for name in files(tmp_path))


async def test_a_key_that_is_set_makes_no_file(database: Database, tmp_path: Path) -> None:
    await open_vault(settings(tmp_path, MASTER_KEY), database)
    assert not (tmp_path / "master-key").exists()


async def test_another_key_than_that_of_the_values_is_refused(
    database: Database, tmp_path: Path
) -> None:
    await seal(database, Vault([MASTER_KEY]))
    with pytest.raises(SettingsError) as caught:
        await open_vault(settings(tmp_path, NEW_KEY), database)
    (sentence,) = caught.value.problems
    assert sentence.startswith("SERVICE_MASTER_KEY does not hold the key ")
    assert NEW_KEY.hex() not in sentence


async def test_a_key_file_that_is_gone_is_not_made_anew_over_what_it_sealed(
    database: Database, tmp_path: Path
) -> None:
    await seal(database, await open_vault(settings(tmp_path), database))
    (tmp_path / "master-key").unlink()
    with pytest.raises(SettingsError, match="is missing; restore it, or set SERVICE_MASTER_KEY"):
        await open_vault(settings(tmp_path), database)
    assert not (tmp_path / "master-key").exists()


@pytest.mark.parametrize("content", [b"", b"no key\n", b"\xff\xfe"])
async def test_a_key_file_with_something_else_in_it_is_told(
    database: Database, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "master-key").write_bytes(content)
    with pytest.raises(SettingsError, match="master-key holds"):
        await open_vault(settings(tmp_path), database)


async def test_a_new_key_before_the_old_one_seals_everything_anew(
    database: Database, tmp_path: Path
) -> None:
    account_id, certificate_id = await seal(database, Vault([MASTER_KEY]))
    owner = Owner.check(account_id, new_id(1))
    wanted = [EnvironmentVariable(key="URL", value="http://10.0.0.1")]
    await database.write(lambda c: actions.replace(c, owner, wanted, vault=Vault([MASTER_KEY])))
    await open_vault(settings(tmp_path, NEW_KEY, MASTER_KEY), database)
    alone = await open_vault(settings(tmp_path, NEW_KEY), database)
    for row in map(store.read, await database.read(ENCRYPTED.rows)):
        assert alone.decrypt(row.value, row.place) in {"s3cr3t", "http://10.0.0.1"}
    assert certificate_id


async def seal_bodies(database: Database, vault: Vault) -> tuple[str, int, str]:
    """A check in a group and a location, with a password each; their ids."""
    account_id = await database.write(new_account)
    scope = Scope(account_id, 1, vault)
    place = LocationWrite.model_validate(
        {"name": "Cellar", "slugName": "cellar", "proxyUrl": f"http://u:{PASSWORD}@p:1"}
    )
    pepper = Pepper(b"of tests")
    cellar = await database.write(lambda c: locations.create(c, scope, body=place, pepper=pepper))
    given = {"basicAuth": {"username": "u", "password": PASSWORD}}
    body = GroupWrite.model_validate(group_body(apiCheckDefaults=given))
    group = await database.write(lambda c: group_changes.create(c, scope, body, auto_assign=True))
    check = ApiCheckWrite.model_validate(
        check_body("api", privateLocations=["cellar"], groupId=group.id)
    )
    made = await database.write(lambda c: check_changes.create(c, scope, check, auto_assign=True))
    return made.id, group.id, cellar.id


async def test_a_new_key_seals_bodies_and_proxies_anew(database: Database, tmp_path: Path) -> None:
    await seal_bodies(database, Vault([MASTER_KEY]))
    with capture_logs() as told:
        await open_vault(settings(tmp_path, NEW_KEY, MASTER_KEY), database)
    alone = await open_vault(settings(tmp_path, NEW_KEY), database)
    assert [line["values"] for line in told if line["event"] == "vault.sealed_anew"] == [3]
    [check] = await database.read(checks.ENCRYPTED.rows)
    [group] = await database.read(group_sealing.ENCRYPTED.rows)
    [cellar] = await database.read(location_sealing.ENCRYPTED.rows)
    named = {"account_id": check.account_id, "check_id": check.id}
    password = {"username": "u", "password": PASSWORD}
    stored = {"doc": check.doc, "applied": check.applied}
    applied = check_sealing.decrypt_bodies(stored, check.secrets, alone, **named)["applied"]
    assert applied is not None
    assert applied["request"]["basicAuth"] == password
    assert PASSWORD in check_sealing.decrypt_spec(check.spec, alone, **named).decode()
    assert (
        group_sealing.decrypt(group_store.read(group), alone).doc["apiCheckDefaults"]["basicAuth"]
        == password
    )
    assert (
        location_sealing.decrypt(location_store.read(cellar), alone).proxy_url
        == f"http://u:{PASSWORD}@p:1"
    )


async def test_bodies_that_do_not_open_keep_no_start_back(
    database: Database, tmp_path: Path
) -> None:
    vault = Vault([MASTER_KEY])
    ids = await seal_bodies(database, vault)
    moved = vault.encrypt("moved", ("elsewhere",))
    for table, column in (
        (check_, "secrets"),
        (check_group, "secrets"),
        (private_location, "sealed_proxy_url"),
    ):
        await database.write(lambda c, t=table, n=column: c.execute(update(t).values({n: moved})))
    with capture_logs() as told:
        await open_vault(settings(tmp_path, NEW_KEY, MASTER_KEY), database)
    by_event = {line["event"]: line for line in told}
    assert by_event["checks.unreadable"]["check_id"] == ids[0]
    assert by_event["groups.unreadable"]["group_id"] == str(ids[1])
    assert by_event["locations.unreadable"]["location_id"] == ids[2]
    assert by_event["vault.sealed_anew"]["values"] == 0


async def test_what_does_not_open_keeps_no_new_key_and_no_start_back(
    database: Database, tmp_path: Path
) -> None:
    vault = Vault([MASTER_KEY])
    account_id, certificate_id = await seal(database, vault)
    kept = VariableWrite(key="KEPT", value="kept")
    await database.write(lambda c: actions.create(c, Scope(account_id, 1, vault), kept))
    moved = vault.encrypt("moved", ("elsewhere",))
    lost = update(variable).where(variable.c.key == "TOKEN").values(value=moved)
    await database.write(lambda c: c.execute(lost))
    await database.write(lambda c: c.execute(update(client_certificate).values(key=moved)))
    with capture_logs() as told:
        opened = await open_vault(settings(tmp_path, NEW_KEY, MASTER_KEY), database)
    rows = {row.key: store.read(row) for row in await database.read(ENCRYPTED.rows)}
    assert opened.is_current(rows["KEPT"].value[:HEAD_BYTES])
    assert rows["TOKEN"].value == moved
    by_event = {line["event"]: line for line in told}
    assert by_event["variables.unreadable"]["key"] == "TOKEN"
    assert by_event["certificates.unreadable"]["certificate_id"] == certificate_id
    assert by_event["vault.sealed_anew"]["values"] == 1


async def test_one_value_of_an_unknown_key_beside_others_keeps_no_start_back(
    database: Database, tmp_path: Path
) -> None:
    """As after the key before is gone, of a value that could not be sealed anew with the others."""
    vault = Vault([MASTER_KEY])
    account_id, _ = await seal(database, vault)
    kept = VariableWrite(key="KEPT", value="kept")
    await database.write(lambda c: actions.create(c, Scope(account_id, 1, vault), kept))
    other = Vault([NEW_KEY]).encrypt("other", ("elsewhere",))
    lost = update(variable).where(variable.c.key == "TOKEN").values(value=other)
    await database.write(lambda c: c.execute(lost))
    with capture_logs() as told:
        opened = await open_vault(settings(tmp_path, MASTER_KEY), database)
    rows = {row.key: store.read(row) for row in await database.read(ENCRYPTED.rows)}
    assert opened.decrypt(rows["KEPT"].value, rows["KEPT"].place) == "kept"
    by_event = {line["event"]: line for line in told}
    assert by_event["vault.keys_unknown"]["keys"] == [other[1:HEAD_BYTES].hex()]
    assert by_event["variables.unreadable"]["key"] == "TOKEN"


async def test_the_key_before_is_refused_though_a_value_that_was_left_of_it_is_there(
    database: Database, tmp_path: Path
) -> None:
    """It would open nothing, and seal whatever comes."""
    vault = Vault([NEW_KEY])
    account_id, _ = await seal(database, vault)
    left = Vault([MASTER_KEY]).encrypt("left", ("elsewhere",))
    lost = update(variable).where(variable.c.key == "TOKEN").values(value=left)
    await database.write(lambda c: c.execute(lost))
    kept = VariableWrite(key="KEPT", value="kept")
    await database.write(lambda c: actions.create(c, Scope(account_id, 1, vault), kept))
    with pytest.raises(SettingsError) as caught:
        await open_vault(settings(tmp_path, MASTER_KEY), database)
    assert vault.encrypt("any", ("where",))[1:HEAD_BYTES].hex() in str(caught.value)


async def test_secrets_of_a_check_are_sealed_anew_though_what_its_runs_need_does_not_open(
    database: Database, tmp_path: Path
) -> None:
    """Or they would be lost with the key before."""
    vault = Vault([MASTER_KEY])
    await seal_bodies(database, vault)
    lost = update(check_).values(spec=vault.encrypt("moved", ("elsewhere",)))
    await database.write(lambda c: c.execute(lost))
    await open_vault(settings(tmp_path, NEW_KEY, MASTER_KEY), database)
    alone = await open_vault(settings(tmp_path, NEW_KEY), database)
    [check] = await database.read(checks.ENCRYPTED.rows)
    named = {"account_id": check.account_id, "check_id": check.id}
    stored = {"doc": check.doc, "applied": check.applied}
    bodies = check_sealing.decrypt_bodies(stored, check.secrets, alone, **named)
    assert PASSWORD in str(bodies["applied"])
    with pytest.raises(DecryptionError):
        check_sealing.decrypt_spec(check.spec, alone, **named)


@ON_POSTGRESQL
async def test_a_second_service_on_one_database_makes_no_key_of_its_own(
    tmp_path: Path, postgresql_url: str
) -> None:
    def service(name: str, *keys: bytes) -> Settings:
        url = PostgresUrl(postgresql_url)
        folder = tmp_path / name
        return Settings(
            data_dir=folder, database=url, key_pepper="p" * 40, master_keys=keys, port=0
        )

    async with running(service("first")):
        pass
    key = bytes.fromhex((tmp_path / "first" / FILE).read_text())
    with pytest.raises(SettingsError, match="is missing; restore it, or set SERVICE_MASTER_KEY"):
        async with running(service("second")):
            pass
    assert not (tmp_path / "second" / FILE).exists()
    async with running(service("second", key)), running(service("first")):
        pass
