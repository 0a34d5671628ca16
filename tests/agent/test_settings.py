"""Settings: every variable, every problem at once, no secret in any of them."""

from dataclasses import fields
from pathlib import Path

import pytest
import trustme

from agent.settings import BadSettingsError, Settings, read_settings
from agent.settings_table import SETTINGS, default_main_slots
from agent.telemetry.logs import LogFormat, LogLevel

LEAST = {"API_KEY": "pl_secret_key_1", "SERVICE_URL": "https://picket.example/"}
SECRET = "pl_secret_key_1"


def problems(**environ: str) -> tuple[str, ...]:
    with pytest.raises(BadSettingsError) as caught:
        read_settings({**LEAST, **environ})
    return caught.value.problems


def test_two_variables_are_enough() -> None:
    settings = read_settings(LEAST)
    assert settings.service_url == "https://picket.example"
    assert settings.uptime_concurrency == 256
    assert settings.health_port == 8081
    assert settings.heartbeat_port == 8082
    assert settings.health_host == settings.heartbeat_host == "", "every address of the machine"
    assert settings.external_observability
    assert settings.log_level is LogLevel.INFO
    assert settings.data_dir == Path("/var/lib/picket")
    assert settings.spool_max_bytes == 1024**3
    assert settings.spool_max_age_s == 86400
    assert settings.shutdown_grace_s == 300
    assert settings.ready_grace_s == 60
    assert settings.job_concurrency >= 1


def test_every_variable_is_read(tmp_path: Path) -> None:
    pem = tmp_path / "roots.pem"
    trustme.CA().cert_pem.write_to_path(pem)
    settings = read_settings(
        {
            **LEAST,
            "JOB_CONCURRENCY": "3",
            "UPTIME_CONCURRENCY": "64",
            "AGENT_HEALTH_PORT": "0",
            "AGENT_HEALTH_HOST": "127.0.0.1",
            "HEARTBEAT_PORT": "0",
            "HEARTBEAT_HOST": "::1",
            "EXTERNAL_OBSERVABILITY": "OFF",
            "LOG_LEVEL": "debug",
            "LOG_FORMAT": "Console",
            "HTTPS_PROXY": "http://user:pass@proxy.example:3128",
            "HTTP_PROXY": "proxy.example:3128",
            "NO_PROXY": "localhost, .internal",
            "USE_OS_DNS_RESOLVER": "true",
            "EXTRA_CA_CERTS": str(pem),
            "EGRESS_ALLOW": "10.0.0.0/8, *.internal",
            "EGRESS_DENY": "10.1.0.0/16",
            "PICKET_RUNTIMES": str(tmp_path),
            "CHROMIUM_PATH": "/bin/sh",
            "AGENT_DATA_DIR": str(tmp_path),
            "SPOOL_MAX_BYTES": "512MiB",
            "SPOOL_MAX_AGE_S": "60",
            "SHUTDOWN_GRACE_S": "5",
            "AGENT_READY_GRACE_S": "7",
            "SERVICE_SECRET_DB": "hunter2",
        }
    )
    assert (settings.job_concurrency, settings.uptime_concurrency) == (3, 64)
    assert (settings.health_port, settings.heartbeat_port) == (0, 0)
    assert (settings.health_host, settings.heartbeat_host) == ("127.0.0.1", "::1")
    assert not settings.external_observability
    assert (settings.log_level, settings.log_format) == (LogLevel.DEBUG, LogFormat.CONSOLE)
    assert settings.http_proxy == "http://proxy.example:3128"
    assert settings.no_proxy == ("localhost", ".internal")
    assert settings.use_os_dns_resolver
    assert settings.extra_ca_certs == pem
    assert settings.egress.deny
    assert (settings.runtimes_dir, settings.chromium_path) == (tmp_path, Path("/bin/sh"))
    assert settings.spool_max_bytes == 512 * 1024**2
    assert (settings.spool_max_age_s, settings.shutdown_grace_s) == (60, 5)
    assert settings.ready_grace_s == 7
    assert settings.service_secrets == {"SERVICE_SECRET_DB": "hunter2"}


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("AGENT_HEALTH_PORT", "99999", "AGENT_HEALTH_PORT is 99999; use 0 to 65535"),
        (
            "HEARTBEAT_HOST",
            "localhost",
            "HEARTBEAT_HOST is localhost; use an IP address of this machine, as in 127.0.0.1",
        ),
        ("AGENT_HEALTH_PORT", "http", "AGENT_HEALTH_PORT is http; use 0 to 65535"),
        (
            "AGENT_SENSITIVE_HEADERS",
            "X-A, no name",
            (
                "AGENT_SENSITIVE_HEADERS is X-A, no name; "
                "use names of headers, as in X-Session, X-Internal-Token"
            ),
        ),
        ("JOB_CONCURRENCY", "0", "JOB_CONCURRENCY is 0; use 1 to 1000"),
        ("EXTERNAL_OBSERVABILITY", "maybe", "EXTERNAL_OBSERVABILITY is maybe; use on or off"),
        ("LOG_LEVEL", "LOUD", "LOG_LEVEL is LOUD; use DEBUG, INFO, LOG, WARN or ERROR"),
        (
            "PICKET_RUNTIMES",
            "/nowhere",
            "PICKET_RUNTIMES is /nowhere; use the absolute path of a folder that exists",
        ),
        ("CHROMIUM_PATH", "/tmp", "CHROMIUM_PATH is /tmp; use the absolute path of a program"),
        ("AGENT_DATA_DIR", "spool", "AGENT_DATA_DIR is spool; use an absolute path"),
        ("SHUTDOWN_GRACE_S", "-1", "SHUTDOWN_GRACE_S is -1; use 0 to 86400 seconds"),
        ("SHUTDOWN_GRACE_S", "nan", "SHUTDOWN_GRACE_S is nan; use 0 to 86400 seconds"),
    ],
)
def test_a_bad_value_is_one_line_with_what_is_allowed(name: str, value: str, line: str) -> None:
    assert problems(**{name: value}) == (line,)


@pytest.mark.parametrize(
    "value",
    [
        "ftp://x",
        "picket.example",
        "https://",
        "https://h/?q=1",
        "http://a b",
        "http://a..b",
        f"http://{'a' * 64}.test",
        "https://picket.example/v1",
        "https://picket.example/monitoring/v1/",
    ],
)
def test_a_service_url_that_leads_nowhere_is_refused(value: str) -> None:
    (line,) = problems(SERVICE_URL=value)
    assert line.startswith(f"SERVICE_URL is {value}; use ")
    assert "begins with http:// or https://" in line


@pytest.mark.parametrize("port", ["99999", "0", "web", "-1"])
def test_a_service_url_whose_port_is_none_says_so(port: str) -> None:
    (line,) = problems(SERVICE_URL=f"http://h:{port}")
    assert line == f"SERVICE_URL is http://h:{port}; use a port from 1 to 65535, or none"
    (line,) = problems(HTTPS_PROXY=f"http://u:proxy-password@h:{port}")
    assert line == "HTTPS_PROXY is not usable; use a port from 1 to 65535, or none"


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(BadSettingsError) as caught:
        read_settings({"AGENT_HEALTH_PORT": "x", "LOG_FORMAT": "xml"})
    names = [line.split()[0] for line in caught.value.problems]
    assert names == ["API_KEY", "SERVICE_URL", "AGENT_HEALTH_PORT", "LOG_FORMAT"]


def test_an_empty_variable_counts_as_not_set() -> None:
    assert read_settings({**LEAST, "LOG_LEVEL": "", "HTTPS_PROXY": ""}).https_proxy is None


def test_no_secret_stands_in_a_problem() -> None:
    lines = problems(
        API_KEY="pl_bad key with blanks",
        HTTPS_PROXY="ftp://user:proxy-password@host",
        SERVICE_URL="https://me:url-password@picket.example",
    )
    text = "\n".join(lines)
    assert len(lines) == 3
    for secret in ("pl_bad", "proxy-password", "url-password"):
        assert secret not in text


def test_a_key_of_the_public_api_is_told_from_one_of_a_location() -> None:
    (line,) = problems(API_KEY="cu_0f9e8d7c6b5a")
    assert line == (
        "API_KEY is a key of the public API, which begins with cu_; "
        "use the key of a private location, which begins with pl_"
    )


@pytest.mark.parametrize("key", ["a-key-of-another-shape", "sv_key", "0f9e8d7c6b5a"])
def test_a_key_of_an_unknown_shape_is_left_to_the_service(key: str) -> None:
    assert read_settings({**LEAST, "API_KEY": key}).api_key == key


def test_no_secret_stands_in_the_repr() -> None:
    settings = read_settings(
        {**LEAST, "SERVICE_SECRET_X": "hunter2", "HTTPS_PROXY": "http://u:proxy-pw@h:1"}
    )
    for secret in (SECRET, "hunter2", "proxy-pw"):
        assert secret not in repr(settings)
        assert any(secret in value for value in settings.secret_values())


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    key, secret = tmp_path / "key", tmp_path / "secret"
    key.write_text("pl_from_file\n")
    secret.write_text("from file")
    settings = read_settings(
        {
            "SERVICE_URL": LEAST["SERVICE_URL"],
            "API_KEY_FILE": str(key),
            "SERVICE_SECRET_A_FILE": str(secret),
            "SERVICE_SECRET_B": "plain",
        }
    )
    assert settings.api_key == "pl_from_file"
    assert settings.service_secrets == {
        "SERVICE_SECRET_A": "from file",
        "SERVICE_SECRET_B": "plain",
    }


def test_a_secret_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    missing, empty = tmp_path / "missing", tmp_path / "empty"
    assert problems(SERVICE_SECRET_A_FILE=str(missing), SERVICE_SECRET_B_FILE=str(empty)) == (
        f"SERVICE_SECRET_A_FILE is {missing}; use a readable text file",
        f"SERVICE_SECRET_B_FILE is {empty}, which is empty; use a file that contains it",
    )


def test_secrets_that_no_script_can_be_given_are_named_without_their_values(tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(b"hunter\0two")
    assert problems(SERVICE_SECRET_A_FILE=str(packed), SERVICE_SECRET_B="hunter\udcff") == (
        "SERVICE_SECRET_A_FILE is not valid; use UTF-8 text without NUL",
        "SERVICE_SECRET_B is not valid; use UTF-8 text without NUL",
    )
    room = 131071 - len("SERVICE_SECRET_A=SERVICE_SECRET_B=x")
    assert problems(SERVICE_SECRET_A="k" * (room + 1), SERVICE_SECRET_B="x") == (
        "SERVICE_SECRET_* have 131072 bytes together, names included; use at most 131071",
    )
    fitting = {**LEAST, "SERVICE_SECRET_A": "k" * room, "SERVICE_SECRET_B": "x"}
    assert read_settings(fitting).service_secrets["SERVICE_SECRET_B"] == "x"


def test_a_secret_is_given_in_one_way_only(tmp_path: Path) -> None:
    assert problems(API_KEY_FILE=str(tmp_path)) == (
        "API_KEY and API_KEY_FILE are both set; use one of them",
    )


def test_a_bad_egress_rule_is_one_line() -> None:
    (line,) = problems(EGRESS_DENY="10.0.0.0/8,300.1.1.1/3")
    assert line.startswith("EGRESS_DENY has the rule '300.1.1.1/3'")


def test_a_file_of_no_certificates_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "roots.pem"
    path.write_text("nothing")
    assert problems(EXTRA_CA_CERTS=str(path)) == (
        f"EXTRA_CA_CERTS is {path}; use a readable PEM file of certificates",
    )


def test_proxies_may_be_lower_case() -> None:
    settings = read_settings({**LEAST, "https_proxy": "http://p:1", "no_proxy": "*"})
    assert (settings.https_proxy, settings.no_proxy) == ("http://p:1", ("*",))


@pytest.mark.parametrize(
    ("cores", "free_gb", "slots"), [(8, 16, 8), (8, 4, 2), (2, 64, 2), (4, 0.5, 1)]
)
def test_main_slots_follow_memory_and_cores(cores: int, free_gb: float, slots: int) -> None:
    assert default_main_slots(cores=cores, free_bytes=int(free_gb * 1e9)) == slots


def test_the_table_speaks_of_every_setting() -> None:
    told = {setting.field for setting in SETTINGS} | {"service_secrets", "egress", "unknown"}
    held = {field.name for field in fields(Settings)} | {"egress_allow", "egress_deny"}
    assert told == held
    assert all(setting.meaning.endswith(".") for setting in SETTINGS)


def test_the_table_names_the_defaults_that_hold() -> None:
    settings = read_settings(LEAST)
    for setting in SETTINGS:
        if setting.default not in {"", "required"} and hasattr(settings, setting.field):
            try:
                shown = setting.read(setting.default)
            except ValueError:
                continue  # a default in words
            assert shown == getattr(settings, setting.field), setting.name
