"""What `picket up` gives to its parts."""

from pathlib import Path

from picket.up.addresses import Ports
from picket.up.data_dir import DataDir
from picket.up.processes import (
    agent_program,
    alert_settings,
    location_secrets,
    service_program,
)

ENVIRON = {
    "SERVICE_SECRET_TOKEN": "typed-by-scripts",
    "SERVICE_SECRET_DB_FILE": "/run/secrets/db",
    "SERVICE_HOST": "0.0.0.0",
    "API_KEY": "pl_of-somebody-else",
}
PORTS = Ports(service=1, health=2, ping=3)
FOLDER = DataDir(Path("/data"))


def test_nothing_that_is_started_listens_beyond_loopback() -> None:
    agent = agent_program(FOLDER, PORTS, authority=Path("/ca.pem"), secrets={})
    service = service_program(FOLDER, port=1)
    hosts = {
        name: value
        for name, value in (*agent.settings.items(), *service.settings.items())
        if name.endswith("_HOST")
    }
    wanted = dict.fromkeys(("AGENT_HEALTH_HOST", "HEARTBEAT_HOST", "SERVICE_HOST"), "127.0.0.1")
    assert hosts == wanted


def test_secrets_of_the_location_reach_the_agent_and_nothing_else_does() -> None:
    agent = agent_program(
        FOLDER,
        PORTS,
        authority=Path("/ca.pem"),
        secrets=location_secrets(ENVIRON),
    )
    shared = ENVIRON.items() & agent.settings.items()
    assert {name for name, _ in shared} == {"SERVICE_SECRET_TOKEN", "SERVICE_SECRET_DB_FILE"}
    assert not ENVIRON.items() & service_program(FOLDER, port=1).settings.items()


def test_the_way_out_of_alerts_reaches_the_service() -> None:
    mail = {
        "SMTP_URL": "smtp://127.0.0.1:2525",
        "SMTP_FROM": "picket@shop.example",
        "SERVICE_PUBLIC_URL": "https://picket.shop.example",
    }
    program = service_program(FOLDER, port=1, alerts=alert_settings({**ENVIRON, **mail}))
    assert mail.items() <= program.settings.items()
    assert not ENVIRON.items() & program.settings.items()
