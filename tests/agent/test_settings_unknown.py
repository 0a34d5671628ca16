"""Variables that are no settings: which are told, and what stands beside them."""

import pytest

from agent.settings import BadSettingsError, read_settings, unknown_names
from agent.settings_table import SETTINGS
from contract.suggestions import UnknownName

LEAST = {"API_KEY": "pl_secret_key_1", "SERVICE_URL": "https://picket.example/"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("AGENT_HEALTH_PROT", "AGENT_HEALTH_PORT"),
        ("agent_health_port", "AGENT_HEALTH_PORT"),
        ("AGENT_DATADIR", "AGENT_DATA_DIR"),
        ("EGRESS_ALOW", "EGRESS_ALLOW"),
        ("EGRESS_ALLOW_FILE", "EGRESS_ALLOW"),
        ("SPOOL_MAX_BYTE", "SPOOL_MAX_BYTES"),
        ("JOB_CONCURENCY", "JOB_CONCURRENCY"),
        ("HEARTBEAT_PROT", "HEARTBEAT_PORT"),
        ("SHUTDOWN_GRACE", "SHUTDOWN_GRACE_S"),
        ("LOG_LEVL", "LOG_LEVEL"),
        ("API_KEY_FLIE", "API_KEY_FILE"),
        ("API_KEY_FILES", "API_KEY_FILE"),
        ("HTTPS_PROXY_FIEL", "HTTPS_PROXY_FILE"),
        ("HTTPS_PROXI_FILE", "HTTPS_PROXY_FILE"),
        ("JOB_CONCURRENCY_FILE", "JOB_CONCURRENCY"),
        ("SERVICE_URL_FILE", "SERVICE_URL"),
        ("LOG_LEVEL_FIL", "LOG_LEVEL"),
        ("SERVICE_SECRET_TOKEN_FLIE", "SERVICE_SECRET_TOKEN_FILE"),
    ],
)
def test_a_misspelt_setting_is_told_with_the_nearest_name(name: str, meant: str) -> None:
    assert unknown_names({**LEAST, name: "x"}) == (UnknownName(name, meant),)
    assert UnknownName(name, meant).sentence == f"{name} is not a setting; did you mean {meant}?"


def test_what_begins_as_our_own_and_is_like_nothing_is_told_too() -> None:
    (found,) = unknown_names({**LEAST, "AGENT_XYZ": "1"})
    assert found == UnknownName("AGENT_XYZ", None)
    assert found.sentence == "AGENT_XYZ is not a setting; it has no effect"


def test_every_setting_is_known_and_the_files_of_secrets_are() -> None:
    names = [setting.name for setting in SETTINGS]
    files = [f"{setting.name}_FILE" for setting in SETTINGS if setting.secret]
    lower = [setting.name.lower() for setting in SETTINGS if setting.any_case]
    assert unknown_names(dict.fromkeys([*names, *files, *lower], "x")) == ()


@pytest.mark.parametrize(
    "name",
    [
        "API_KYE_FILE", "X_API_KEY_FILE", "SERVICE_SECRET_TILE", "SERVICE_SECRET_MY_PROFILE",
        "PATH", "FTP_PROXY", "ALL_PROXY", "JOB_NAME", "LOG_FILE", "API_KEYS", "PORT",
        "SERVICE_SECRET_AGENT_HEALTH_PROT", "SERVICE_SECRETS", "SERVICE_DATA_DIR",
        "AGENT_SERVICE_HOST", "AGENT_SERVICE_PORT_HTTP", "AGENT_PORT_8081_TCP_ADDR",
    ],
)  # fmt: skip
def test_what_belongs_to_others_is_left_alone(name: str) -> None:
    assert unknown_names({**LEAST, name: "x"}) == ()


def test_a_link_to_a_neighbour_and_an_empty_variable_are_left_alone() -> None:
    assert unknown_names({"AGENT_PORT": "tcp://10.0.0.1:80", "AGENT_HEALTH_PROT": ""}) == ()


def test_the_settings_carry_them_without_their_values() -> None:
    settings = read_settings({**LEAST, "AGENT_HEALTH_PROT": "a-secret-value"})
    assert [each.nearest for each in settings.unknown] == ["AGENT_HEALTH_PORT"]
    assert "a-secret-value" not in repr(settings)


def test_a_misspelt_twin_is_told_beside_the_setting_that_is_missing() -> None:
    environ = {"SERVICE_URL": LEAST["SERVICE_URL"], "API_KYE_FILE": "/run/secrets/key"}
    with pytest.raises(BadSettingsError) as bad:
        read_settings(environ)
    first, second = bad.value.problems
    assert first.startswith("API_KEY is not set")
    assert second == "API_KYE_FILE is not a setting; did you mean API_KEY_FILE?"
