"""The settings of agent and service for `--help`: names, meanings, defaults, never values."""

from typing import Final

from agent.settings_table import REQUIRED, SETTINGS, Setting

_SECRETS_ROW: Final = (
    "SERVICE_SECRET_*",
    "Scripts of checks may read these; hidden in all that leaves. Or SERVICE_SECRET_*_FILE.",
)

SERVICE_ROWS: Final = (
    ("SERVICE_HOST", "The address to listen at. Default: 0.0.0.0."),
    ("SERVICE_PORT", "The port to listen at; 0 for any free one. Default: 8080."),
    (
        "SERVICE_DATA_DIR",
        "Where the database and uploaded files are kept. Default: .picket/service.",
    ),
    (
        "DATABASE_URL",
        "sqlite:/// and the path of a file. Default: a file in SERVICE_DATA_DIR.",
    ),
    (
        "SERVICE_PUBLIC_URL",
        "Where people reach the service. Default: where the request came in.",
    ),
    ("LOG_LEVEL", "DEBUG, INFO, WARN or ERROR. Default: INFO."),
    ("LOG_FORMAT", "json or console. Default: console on a terminal, json otherwise."),
    (
        "METRICS_ACCESS",
        "Who may read /metrics: loopback, anyone who reaches the port, or off. Default: loopback.",
    ),
    (
        "FIRST_API_KEY",
        (
            "The API key of a first start. Default: a new one is made and printed once. "
            "FIRST_API_KEY_FILE may name a file that holds it."
        ),
    ),
    (
        "FIRST_LOCATION_KEY",
        (
            "The private location's key of a first start. Default: a new one is made and printed "
            "once. FIRST_LOCATION_KEY_FILE may name a file that holds it."
        ),
    ),
)
"""The service keeps no table of its settings; a test holds this one complete."""


def settings_rows(command: str) -> list[tuple[str, str]]:
    """Name and explanation of each variable that the command reads."""
    return _agent_rows() if command == "agent" else list(SERVICE_ROWS)


def _agent_rows() -> list[tuple[str, str]]:
    return [*((setting.name, _meaning(setting)) for setting in SETTINGS), _SECRETS_ROW]


def _meaning(setting: Setting) -> str:
    words = [setting.meaning]
    if setting.default == REQUIRED:
        words.append("Required.")
    elif setting.default:
        words.append(f"Default: {setting.default}.")
    if setting.secret:
        words.append(f"{setting.name}_FILE may name a file that holds it.")
    return " ".join(words)
