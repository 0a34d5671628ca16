import os
from pathlib import Path

import pytest

from agent.settings_table import SETTINGS
from contract.suggestions import UnknownName
from service.accounts.model import Role
from service.errors import SettingsError
from service.mail.model import Sender
from service.settings import (
    BadgeAccess,
    LogFormat,
    LogLevel,
    MetricsAccess,
    PostgresUrl,
    read_settings,
)

KEY = "cu_" + "k" * 40
NAMES_OF_BOTH = {"LOG_LEVEL", "LOG_FORMAT"}
LOCATION_KEY = "pl_" + "k" * 40


def problems(**environ: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        read_settings(environ)
    return caught.value.problems


def test_no_setting_is_required() -> None:
    settings = read_settings({})
    assert (settings.host, settings.port) == ("0.0.0.0", 8080)
    assert settings.database_file == settings.data_dir / "picket.db"


def test_every_setting_is_read() -> None:
    settings = read_settings(
        {
            "SERVICE_HOST": "127.0.0.1",
            "SERVICE_PORT": "0",
            "SERVICE_DATA_DIR": "/data",
            "DATABASE_URL": "sqlite:////data/other.db",
            "SERVICE_PUBLIC_URL": "https://picket.example/",
            "TRUSTED_PROXIES": "10.0.0.0/8, 192.0.2.7",
            "LOG_LEVEL": "debug",
            "LOG_FORMAT": "console",
            "METRICS_ACCESS": "Anyone",
            "BADGE_ACCESS": "Anyone",
            "STATIC_ADDRESSES": "cellar=192.0.2.7",
            "REGION_LOCATIONS": "eu-west-1=cellar, *=default",
            "SERVICE_MASTER_KEY": f"{'a1' * 32} {'b2' * 32}",
            "KEY_PEPPER": "p" * 32,
            "API_REQUESTS_PER_MINUTE": "1",
            "RESULT_LISTS_PER_MINUTE": "2",
            "LOCATION_REQUESTS_PER_MINUTE": "0",
            "REFUSED_REQUESTS_PER_MINUTE": "4",
            "SMTP_URL": "smtp://picket:pass%40word@mail.example",
            "SMTP_FROM": "Picket <status@mail.example>",
            "SMS_GATEWAY_URL": "https://user:pass@sms.example/send",
            "CALL_GATEWAY_URL": "https://user:pass@call.example/send",
            "ALERT_EGRESS_ALLOW": "127.0.0.0/8",
            "FIRST_API_KEY": KEY,
            "FIRST_LOCATION_KEY": LOCATION_KEY,
        }
    )
    assert settings.sms_gateway == "https://user:pass@sms.example/send"
    assert settings.call_gateway == "https://user:pass@call.example/send"
    assert [str(network) for network in settings.alert_egress_allow] == ["127.0.0.0/8"]
    assert "pass" not in repr(settings)
    assert settings.smtp_server is not None
    assert (settings.smtp_server.port, settings.smtp_server.password) == (587, "pass@word")
    assert settings.mail_sender == Sender("status@mail.example", "Picket")
    assert (settings.host, settings.port) == ("127.0.0.1", 0)
    assert settings.database == settings.database_file == Path("/data/other.db")
    assert settings.public_url == "https://picket.example"
    assert settings.trusted_proxies == ("10.0.0.0/8", "192.0.2.7")
    assert (settings.log_level, settings.log_format) == (LogLevel.DEBUG, LogFormat.CONSOLE)
    assert settings.metrics_access is MetricsAccess.ANYONE
    assert settings.badge_access is BadgeAccess.ANYONE
    assert settings.static_addresses.of_version(4) == ["192.0.2.7"]
    assert settings.region_locations.slugs == {"eu-west-1": "cellar", "*": "default"}
    assert settings.master_keys == (b"\xa1" * 32, b"\xb2" * 32)
    assert "a1a1" not in repr(settings)
    assert settings.key_pepper == "p" * 32
    assert (settings.api_requests, settings.result_lists) == (1, 2)
    assert (settings.agent_requests, settings.refused_requests) == (0, 4)
    assert (settings.first_api_key, settings.first_location_key) == (KEY, LOCATION_KEY)


def test_the_database_lies_in_the_data_directory() -> None:
    assert read_settings({"SERVICE_DATA_DIR": "/data"}).database_file == Path("/data/picket.db")


def test_the_address_of_a_postgresql_database_is_kept_and_its_password_never_shown() -> None:
    address = "postgresql://picket:hunter2@db/picket"
    settings = read_settings({"SERVICE_DATA_DIR": "/data", "DATABASE_URL": address})
    assert settings.database == PostgresUrl(address)
    assert settings.database_file.parent == Path("/data")
    assert "hunter2" not in repr(settings)


def test_a_secret_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    settings = read_settings({"FIRST_API_KEY_FILE": str(tmp_path / "key")})
    assert settings.first_api_key == KEY


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("KEY_PEPPER", "short", "KEY_PEPPER has 5 characters; use at least 32"),
        (
            "API_REQUESTS_PER_MINUTE",
            "-1",
            "API_REQUESTS_PER_MINUTE is -1; use a whole number, 0 for no limit",
        ),
        ("SERVICE_PORT", "99999", "SERVICE_PORT is 99999; use 0 to 65535"),
        ("SERVICE_PORT", "http", "SERVICE_PORT is http; use 0 to 65535"),
        ("METRICS_ACCESS", "all", "METRICS_ACCESS is all; use off, loopback or anyone"),
        (
            "TRUSTED_PROXIES",
            "10.0.0.0/8,*",
            "TRUSTED_PROXIES has *; use addresses as in 10.0.0.0/8,192.0.2.7",
        ),
        ("LOG_LEVEL", "LOUD", "LOG_LEVEL is LOUD; use DEBUG, INFO, WARN or ERROR"),
        (
            "ARTIFACT_STORE",
            "https://bucket",
            "ARTIFACT_STORE is https://bucket; use the form s3://bucket/prefix",
        ),
        (
            "ARTIFACT_STORE",
            "s3://key:hunter2@bucket",
            (
                "ARTIFACT_STORE has credentials; "
                "set ARTIFACT_STORE_KEY_ID and ARTIFACT_STORE_SECRET_KEY"
            ),
        ),
        (
            "ARTIFACT_STORE_SECRET_KEY",
            "hunter2",
            "of ARTIFACT_STORE_KEY_ID and ARTIFACT_STORE_SECRET_KEY one is missing; set both",
        ),
        (
            "ARTIFACT_LINK_MINUTES",
            "10081",
            "ARTIFACT_LINK_MINUTES is 10081; use whole minutes up to 10080, 0 for no links",
        ),
        (
            "CLICKHOUSE_URL",
            "picket:hunter2@clickhouse:8123",
            (
                "CLICKHOUSE_URL does not begin with http:// or https:// and a host; use an "
                "address as in https://user:password@clickhouse.example:8443/picket"
            ),
        ),
        (
            "CLICKHOUSE_URL",
            "http://picket:hunter2@clickhouse:tcp",
            (
                "CLICKHOUSE_URL is no address; use an address as in "
                "https://user:password@clickhouse.example:8443/picket"
            ),
        ),
        ("LOG_FORMAT", "xml", "LOG_FORMAT is xml; use json or console"),
        (
            "DATABASE_URL",
            "mysql://root:hunter2@db/x",
            "DATABASE_URL begins with mysql; use sqlite:/// and the path of a file, or postgresql://",
        ),
        (
            "DATABASE_URL",
            "postgresql://root:hunter2@db:tcp/x",
            "DATABASE_URL has the port tcp; use 1 to 65535",
        ),
        (
            "SERVICE_PUBLIC_URL",
            "picket.example",
            (
                "SERVICE_PUBLIC_URL is picket.example; use an address that begins with http:// "
                "or https://"
            ),
        ),
        ("FIRST_API_KEY", "secret", "FIRST_API_KEY does not begin with cu_ or sv_"),
        ("FIRST_LOCATION_KEY", "pl_short", "FIRST_LOCATION_KEY has 8 characters; use at least 32"),
        (
            "FIRST_API_KEY_FILE",
            "/no/such/file",
            "FIRST_API_KEY_FILE is /no/such/file, which cannot be read: No such file or directory",
        ),
    ],
)
def test_a_bad_setting_is_one_line_that_says_what_to_use(
    name: str, value: str, sentence: str
) -> None:
    assert problems(**{name: value}) == (sentence,)


def test_all_problems_are_said_at_once() -> None:
    assert len(problems(SERVICE_PORT="x", LOG_LEVEL="x", LOG_FORMAT="x")) == 3


def test_a_secret_and_its_file_exclude_each_other() -> None:
    assert problems(FIRST_API_KEY=KEY, FIRST_API_KEY_FILE="/x") == (
        "FIRST_API_KEY and FIRST_API_KEY_FILE are both set; use one of them",
    )


def test_no_secret_shows_in_a_problem_or_in_the_settings_text() -> None:
    assert "hunter2" not in str(problems(FIRST_API_KEY="hunter2", DATABASE_URL="x://a:hunter2@b"))
    assert KEY not in repr(read_settings({"FIRST_API_KEY": KEY}))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(("SERVICE_PROT", "SERVICE_PORT"), ("service_port", "SERVICE_PORT")),
        *(("SERVICE_DATADIR", "SERVICE_DATA_DIR"), ("LOG_LEVL", "LOG_LEVEL")),
        *(("TRUSTED_PROXYS", "TRUSTED_PROXIES"), ("FIRST_APIKEY", "FIRST_API_KEY")),
    ],
)
def test_a_misspelt_setting_is_told_with_the_nearest_name_and_no_value(
    name: str, meant: str
) -> None:
    settings = read_settings({name: "a-secret-value"})
    assert settings.unknown == (UnknownName(name, meant),)
    assert "a-secret-value" not in repr(settings)


def test_what_belongs_to_agents_and_others_is_left_alone() -> None:
    agents = [setting.name for setting in SETTINGS if setting.name not in NAMES_OF_BOTH]
    files = ["KEY_PEPPER_FILE", "SERVICE_MASTER_KEY_FILE", "FIRST_API_KEY_FILE"]
    others = ["PATH", "PORT", "SERVICE_NAME", "DATABASE_NAME", "LOG_FILE", "SERVICE_SECRETS"]
    links = ["PICKET_SERVICE_HOST", "PICKET_SERVICE_PORT", "SERVICE_PORT_8080_TCP"]
    environ = dict.fromkeys([*agents, *others, *links], "x") | dict.fromkeys(files, os.devnull)
    assert read_settings(environ).unknown == ()


def test_a_link_to_a_neighbour_is_no_slip_of_the_pen() -> None:
    assert read_settings({"SERVICE_PORTS": "tcp://10.0.0.1:80"}).unknown == ()


def test_an_identity_provider_is_off_unless_it_is_set_whole() -> None:
    given = {
        "OIDC_ISSUER": "https://login.example.com",
        "OIDC_CLIENT_ID": "picket",
        "OIDC_ALLOWED_DOMAINS": "Example.com, example.org",
        "OIDC_ROLES": "sre=read_write,all staff=READ_ONLY",
    }
    chosen = read_settings(given).oidc

    assert read_settings({}).oidc is None
    assert chosen is not None
    assert chosen.domains == ("example.com", "example.org")
    assert dict(chosen.roles) == {"sre": Role.READ_WRITE, "all staff": Role.READ_ONLY}
    with pytest.raises(SettingsError, match="OIDC_CLIENT_ID is missing"):
        read_settings({"OIDC_ISSUER": "https://login.example.com"})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OIDC_ISSUER", "login.example.com", "use an address as in https://login.example.com"),
        ("OIDC_ALLOWED_DOMAINS", "@example.com", "use domains as in example.com"),
        ("OIDC_ROLES", "sre=BOSS", "use roles as in sre=READ_WRITE"),
    ],
)
def test_a_wrong_setting_of_the_identity_provider_says_what_to_use(
    name: str, value: str, words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        read_settings({name: value})
