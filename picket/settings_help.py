"""The settings of agent and service as `--help` lists them, without their values."""

from typing import Final

from agent.settings_table import REQUIRED, SETTINGS, Setting

_SECRETS_ROW: Final = (
    "SERVICE_SECRET_*",
    "Secrets that scripts of checks can read; redacted in all results. Or SERVICE_SECRET_*_FILE.",
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
        "sqlite:/// and a path, or postgresql://user:password@host/name. Default: a file.",
    ),
    (
        "CLICKHOUSE_URL",
        "A ClickHouse server that gets copies of results, as in https://user:password@host:8443/db.",
    ),
    ("CLICKHOUSE_DAYS", "How long ClickHouse keeps copies; 0 for ever. Default: 400."),
    (
        "ARTIFACT_STORE",
        "A bucket for files and bundles, as in s3://bucket/prefix. Default: SERVICE_DATA_DIR.",
    ),
    ("ARTIFACT_STORE_ENDPOINT", "The URL of that bucket's store. Default: AWS."),
    ("ARTIFACT_STORE_REGION", "The region of the bucket. Default: us-east-1."),
    (
        "ARTIFACT_STORE_KEY_ID",
        "The access key. Default: credentials of AWS_ variables, the container or the machine.",
    ),
    (
        "ARTIFACT_STORE_SECRET_KEY",
        "Its secret. ARTIFACT_STORE_SECRET_KEY_FILE may name a file that contains it.",
    ),
    (
        "ARTIFACT_LINK_MINUTES",
        "How long signed links to files in the bucket are valid. Default: 0, for none.",
    ),
    (
        "ARTIFACT_AGENT_LINK_MINUTES",
        "How long links by which agents reach the bucket are valid. Default: 0, for none.",
    ),
    (
        "SERVICE_PUBLIC_URL",
        "The URL at which people reach the service. Default: that of each request.",
    ),
    (
        "TRACE_VIEWER_PORT",
        "The port of the trace viewer; 0 for any free one, off for none. Default: 8083.",
    ),
    (
        "TRACE_VIEWER_URL",
        (
            "The URL at which people reach the trace viewer, on a host name of its own. Default: "
            "http://localhost or http://127.0.0.1, for browsers on the same machine."
        ),
    ),
    (
        "TRUSTED_PROXIES",
        "Addresses and networks of proxies whose X-Forwarded-For is trusted. Default: 127.0.0.1.",
    ),
    ("LOG_LEVEL", "DEBUG, INFO, WARN or ERROR. Default: INFO."),
    ("LOG_FORMAT", "json or console. Default: console on a terminal, json otherwise."),
    (
        "METRICS_ACCESS",
        "Who may read /metrics: loopback, anyone who reaches the port, or off. Default: loopback.",
    ),
    (
        "BADGE_ACCESS",
        "Who may see badges: key (of the check's account) or anyone. Default: key.",
    ),
    (
        "STATIC_ADDRESSES",
        "Addresses that agents' requests come from, such as cellar=192.0.2.7, for allowlists.",
    ),
    (
        "REGION_LOCATIONS",
        (
            "Private locations that run checks of public regions, such as eu-west-1=cellar or "
            "*=default. Default: none; picket up sets *=default."
        ),
    ),
    (
        "ENVIRONMENT_URL_HOSTS",
        (
            "Hosts at which trigger links may run checks (environmentUrl), such as "
            "*.preview.example.com. Default: none."
        ),
    ),
    (
        "SERVICE_MASTER_KEY",
        (
            "The key that encrypts secrets in the database: 32 bytes in hex or base64. "
            "Default: the file master-key beside it, created at the first start. "
            "SERVICE_MASTER_KEY_FILE may name a file that contains it."
        ),
    ),
    (
        "KEY_PEPPER",
        (
            "The secret that keys are hashed with, of 32 characters or more. Default: a new one, "
            "kept in SERVICE_DATA_DIR. KEY_PEPPER_FILE may name a file that contains it."
        ),
    ),
    (
        "SMS_GATEWAY_URL",
        (
            "The URL that text messages of alerts are posted to. Default: none. "
            "SMS_GATEWAY_URL_FILE may name a file that contains it."
        ),
    ),
    (
        "CALL_GATEWAY_URL",
        (
            "The URL that calls of alerts are posted to. Default: none. "
            "CALL_GATEWAY_URL_FILE may name a file that contains it."
        ),
    ),
    (
        "ALERT_EGRESS_ALLOW",
        "Loopback and link-local networks that alert channels may reach, such as 127.0.0.0/8.",
    ),
    (
        "API_REQUESTS_PER_MINUTE",
        "Requests per API key, or per address where none is needed; 0: no limit. Default: 600.",
    ),
    (
        "RESULT_LISTS_PER_MINUTE",
        "Requests for lists of results per API key; 0: no limit. Default: 60.",
    ),
    (
        "ANALYTICS_REQUESTS_PER_MINUTE",
        "Requests for series, summaries and reports per API key; 0: no limit. Default: 30.",
    ),
    (
        "LOCATION_REQUESTS_PER_MINUTE",
        "Requests of all agents per location key; 0: no limit. Default: 120000.",
    ),
    (
        "REFUSED_REQUESTS_PER_MINUTE",
        "Requests with invalid keys per address; 0: no limit. Default: 300.",
    ),
    (
        "SMTP_URL",
        (
            "The server that takes mails, as in smtp://user:password@mail.example:587; smtps:// "
            "for TLS from the start. Default: no mails are sent. "
            "SMTP_URL_FILE may name a file that contains it."
        ),
    ),
    (
        "SMTP_FROM",
        (
            "Who mails come from, as in Picket <status@example.com>. Default: the user in "
            "SMTP_URL, if that is an address."
        ),
    ),
    ("RESULTS_KEPT_DAYS", "How long results are kept; 0: for ever. Default: 30."),
    (
        "ROLLUPS_KEPT_DAYS",
        "How long hourly and daily roll-ups are kept; 0: for ever. Default: 761, 25 months.",
    ),
    ("FILES_KEPT_DAYS", "How long files of results are kept; 0: for ever. Default: 30."),
    (
        "LATE_RESULTS_KEPT_DAYS",
        "How long results that came too late are kept; 0: for ever. Default: 7.",
    ),
    ("ALERTS_KEPT_DAYS", "How long alerts are kept; 0: for ever. Default: 396, 13 months."),
    (
        "OIDC_ISSUER",
        "The identity provider (OpenID Connect) by which people may sign in. Default: none.",
    ),
    ("OIDC_CLIENT_ID", "The service's id at the identity provider."),
    (
        "OIDC_CLIENT_SECRET",
        (
            "The service's secret at the identity provider. Default: a public client. "
            "OIDC_CLIENT_SECRET_FILE may name a file that contains it."
        ),
    ),
    (
        "OIDC_ALLOWED_DOMAINS",
        (
            "Domains of mail addresses, such as example.com,example.org: only their people may "
            "sign in by the identity provider, and need not be added first."
        ),
    ),
    (
        "OIDC_ROLES",
        (
            "Roles of the provider's groups, such as sre=READ_WRITE,staff=READ_ONLY: only their "
            "people may sign in by it, and need not be added first."
        ),
    ),
    (
        "OIDC_GROUPS_CLAIM",
        "The claim in which the identity provider lists groups. Default: groups.",
    ),
    (
        "FIRST_API_KEY",
        (
            "The API key that the first start creates. Default: a new one, printed once. "
            "FIRST_API_KEY_FILE may name a file that contains it."
        ),
    ),
    (
        "FIRST_LOCATION_KEY",
        (
            "The private location's key that the first start creates. Default: a new one, printed "
            "once. FIRST_LOCATION_KEY_FILE may name a file that contains it."
        ),
    ),
)
"""The settings of the service; a test proves the list complete."""


def settings_rows(command: str) -> list[tuple[str, str]]:
    """Return name and explanation of each variable that the command reads."""
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
        words.append(f"{setting.name}_FILE may name a file that contains it.")
    return " ".join(words)
