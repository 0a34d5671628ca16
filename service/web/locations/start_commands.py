"""The commands that start an agent of a location, as its page offers them for copying."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_ELSEWHERE: Final = "https://picket.example"
"""The address that stands in commands for other machines when the service has none for them."""
_IMAGE: Final = "No registry has the image: make images builds it, in a checkout of Picket."
_LIGHT: Final = (
    " This is the light image, picket-agent: every check that needs no script and no browser."
)
_FULL: Final = (
    " This is the full image, picket-agent-full: every check, those with scripts and browsers too."
    " It runs as root with five capabilities, so that each run has a user of its own."
)
_HOST_NETWORK: Final = (
    " The service listens on this machine only, so the container shares the machine's network:"
    " 127.0.0.1 inside a container is the container itself."
)
_OWN_ADDRESS: Final = (
    f" Replace {_ELSEWHERE} with an address at which the agent reaches this service; with"
    " SERVICE_PUBLIC_URL set, this page has it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCommand:
    """One way to start an agent."""

    name: str
    note: str
    """What to know before."""
    text: str


def list_commands(service_url: str, key: str) -> Sequence[StartCommand]:
    """Every way to start an agent with a key, the usual one first.

    `service_url`: the service as the reader's browser reaches it.
    """
    is_local = is_loopback(service_url)
    elsewhere = _ELSEWHERE if is_local else service_url
    return (
        _docker(service_url, key, is_local=is_local),
        _docker_full(service_url, key, is_local=is_local),
        _compose(service_url, key, is_local=is_local),
        StartCommand(
            name="Helm",
            note="Two full agents, from the chart in Picket's source. Push the image to a registry"
            " that your cluster reads, and name it here." + (_OWN_ADDRESS if is_local else ""),
            text="make images\n"
            "docker tag picket-agent-full registry.example/picket-agent-full\n"
            "docker push registry.example/picket-agent-full\n"
            f"kubectl create secret generic picket-agent --from-literal=location-key={key}\n"
            "helm install picket-agent deploy/helm/picket-agent \\\n"
            f"  --set serviceUrl={elsewhere} \\\n"
            "  --set image.repository=registry.example/picket-agent-full",
        ),
        StartCommand(
            name="systemd",
            note="A full agent on a host of its own, as root in Picket's source: the agent is"
            " installed in /opt/picket." + (_OWN_ADDRESS if is_local else ""),
            text="python3 -m venv /opt/picket && /opt/picket/bin/pip install '.[agent,scripts]'\n"
            "/opt/picket/bin/picket setup\n"
            "install -d -m 0700 /etc/picket\n"
            f"printf %s '{key}' > /etc/picket/location-key\n"
            "chmod 0600 /etc/picket/location-key\n"
            f"echo 'SERVICE_URL={elsewhere}' > /etc/picket/agent.env\n"
            "install -m 0644 deploy/systemd/picket-agent.service /etc/systemd/system/\n"
            "systemctl enable --now picket-agent",
        ),
        StartCommand(
            name="In a terminal",
            note="For a try on this machine, in a checkout of Picket after `make run` or"
            " `make setup`."
            if is_local
            else "For a try, in a checkout of Picket.",
            text=f"API_KEY={key} SERVICE_URL={service_url} .venv/bin/picket agent",
        ),
    )


def is_loopback(url: str) -> bool:
    """Whether an address means the machine that it is used on."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _docker(service_url: str, key: str, *, is_local: bool) -> StartCommand:
    network = "--network host " if is_local else ""
    return StartCommand(
        name="Docker, light",
        note=_IMAGE + _LIGHT + (_HOST_NETWORK if is_local else ""),
        text="make images\n"
        f"docker run -d --name picket-agent {network}--restart unless-stopped \\\n"
        "  --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \\\n"
        "  --pids-limit 256 --stop-timeout 330 -v picket-agent:/var/lib/picket \\\n"
        f"  -e SERVICE_URL={service_url} -e API_KEY={key} picket-agent",
    )


def _docker_full(service_url: str, key: str, *, is_local: bool) -> StartCommand:
    network = "--network host " if is_local else ""
    return StartCommand(
        name="Docker, full: with browsers",
        note=_IMAGE + _FULL + (_HOST_NETWORK if is_local else ""),
        text="make images\n"
        f"docker run -d --name picket-agent-full {network}--restart unless-stopped \\\n"
        "  --user 0:0 --cap-drop ALL --cap-add CHOWN --cap-add DAC_OVERRIDE --cap-add KILL \\\n"
        "  --cap-add SETGID --cap-add SETUID --security-opt no-new-privileges \\\n"
        "  --read-only --tmpfs /tmp:exec,size=2g --memory 6g --pids-limit 4096 \\\n"
        "  --stop-timeout 330 -v picket-full-agent:/var/lib/picket \\\n"
        f"  -e SERVICE_URL={service_url} -e API_KEY={key} picket-agent-full",
    )


def _compose(service_url: str, key: str, *, is_local: bool) -> StartCommand:
    network = "    network_mode: host\n" if is_local else ""
    return StartCommand(
        name="Compose, light",
        note="Write this to compose.yaml and run docker compose up -d. "
        + _IMAGE
        + _LIGHT
        + (_HOST_NETWORK if is_local else ""),
        text="services:\n"
        "  agent:\n"
        "    image: picket-agent\n"
        f"{network}"
        "    restart: unless-stopped\n"
        "    read_only: true\n"
        "    tmpfs: [/tmp]\n"
        "    cap_drop: [ALL]\n"
        '    security_opt: ["no-new-privileges:true"]\n'
        "    pids_limit: 256\n"
        "    stop_grace_period: 330s\n"
        "    environment:\n"
        f"      SERVICE_URL: {service_url}\n"
        f"      API_KEY: {key}\n"
        '    volumes: ["agent-data:/var/lib/picket"]\n'
        "volumes:\n"
        "  agent-data:",
    )
