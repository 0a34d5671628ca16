"""What `picket up` gives to its parts."""

import socket
from pathlib import Path

from picket.up.data_dir import DataDir
from picket.up.processes import Ports, agent_program, location_secrets, service_program

ENVIRON = {
    "SERVICE_SECRET_TOKEN": "typed-by-scripts",
    "SERVICE_SECRET_DB_FILE": "/run/secrets/db",
    "SERVICE_HOST": "0.0.0.0",
    "API_KEY": "pl_of-somebody-else",
}
FOLDER = DataDir(Path("/data"))


def test_the_service_gets_the_first_wanted_port_that_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        free = Ports.free(wanted=[port]).service
        assert free != port
        assert Ports.free(wanted=[port, free]).service == free


def test_secrets_of_the_location_reach_the_agent_and_nothing_else_does() -> None:
    agent = agent_program(
        FOLDER,
        Ports(service=1, health=2, ping=3),
        authority=Path("/ca.pem"),
        secrets=location_secrets(ENVIRON),
    )
    shared = ENVIRON.items() & agent.settings.items()
    assert {name for name, _ in shared} == {"SERVICE_SECRET_TOKEN", "SERVICE_SECRET_DB_FILE"}
    assert not ENVIRON.items() & service_program(FOLDER, port=1).settings.items()
