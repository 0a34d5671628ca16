"""The manifest for Kubernetes and the unit for systemd say what the pages and the agent say."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent import settings
from agent.__main__ import EXIT_BAD_SETTINGS
from agent.app import EXIT_REFUSED
from agent.settings_table import BYTES_PER_MAIN_JOB, SETTINGS
from runners.scripting.suites.run import LIMITS as SUITE_LIMITS
from tests.deploy.dockerfile import ROOT, read_stages

IMAGE = read_stages(ROOT / "Dockerfile")[-1]
MANIFEST = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/agent.yaml").read_text()))
SECRET, DEPLOYMENT = MANIFEST
POD: dict[str, Any] = DEPLOYMENT["spec"]["template"]["spec"]
(AGENT,) = POD["containers"]
(FOLDERS,) = POD["initContainers"]
COMPOSED = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["full-agent"]
UNIT_FILE = ROOT / "deploy/systemd/picket-agent.service"
UNIT = dict(re.findall(r"^(\w+)=(.*)$", UNIT_FILE.read_text(), re.MULTILINE))
DEFAULTS = settings.read_settings({"API_KEY": "pl_" + "x" * 43, "SERVICE_URL": "http://service"})
NAMES = {setting.name for setting in SETTINGS}
KEY_FILE = "API_KEY_FILE"
"""The twin of a setting that is a secret."""


def documented_capabilities() -> set[str]:
    """What the page on isolation says that an agent with users of its own needs."""
    (needs,) = re.findall(r"needs ((?:`[A-Z_]+`[, and]*)+)\.", flat("docs/isolation.md"))
    return set(re.findall(r"`([A-Z_]+)`", needs))


def flat(page: str) -> str:
    return " ".join((ROOT / page).read_text().split())


def gibibytes(quantity: str) -> int:
    return int(quantity.removesuffix("i").removesuffix("G")) * 1024**3


def test_the_agent_has_the_capabilities_that_isolation_takes_and_no_others() -> None:
    needed = documented_capabilities()
    assert needed == {"CHOWN", "DAC_OVERRIDE", "KILL", "SETGID", "SETUID"}
    given = AGENT["securityContext"]["capabilities"]
    assert (given["drop"], set(given["add"])) == (["ALL"], needed)
    assert (COMPOSED["cap_drop"], set(COMPOSED["cap_add"])) == (["ALL"], needed)
    assert set(UNIT["CapabilityBoundingSet"].split()) == {f"CAP_{name}" for name in needed}
    command = flat("docs/deploy.md")
    assert set(re.findall(r"--cap-add ([A-Z_]+) ", command)) - {"NET_RAW"} == needed


@pytest.mark.parametrize("container", [FOLDERS, AGENT], ids=lambda one: str(one["name"]))
def test_a_container_is_root_and_can_become_no_more(container: dict[str, Any]) -> None:
    context = container["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (0, 0)
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {"requests", "limits"} == set(container["resources"])


def test_a_composed_full_agent_is_root_as_a_pod_is_and_each_run_somebody_else() -> None:
    """Scripts of its own user could read the key's file, and results that wait."""
    assert COMPOSED["user"] == "0:0"


def test_scripts_find_no_token_and_no_key() -> None:
    assert POD["automountServiceAccountToken"] is False
    (key,) = [volume["secret"] for volume in POD["volumes"] if volume["name"] == "key"]
    assert key == {"secretName": SECRET["metadata"]["name"], "defaultMode": 0o400}


def test_what_a_pod_is_told_is_a_setting_and_its_key_is_where_it_is_looked_for() -> None:
    told = {one["name"]: one["value"] for one in AGENT["env"]}
    assert set(told) - {KEY_FILE} <= NAMES
    (mounted,) = [one["mountPath"] for one in AGENT["volumeMounts"] if one["name"] == "key"]
    (name,) = SECRET["stringData"]
    assert told[KEY_FILE] == f"{mounted}/{name}"


def test_a_pod_writes_to_its_volumes_which_others_cannot_spoil() -> None:
    """A volume begins as a folder where anybody may rename what is root's."""
    places = {one["mountPath"] for one in AGENT["volumeMounts"] if not one.get("readOnly")}
    assert places == {str(DEFAULTS.data_dir), "/tmp"}
    assert {one["mountPath"] for one in FOLDERS["volumeMounts"]} == places
    command = FOLDERS["command"][-1]
    assert f"chmod 0711 {DEFAULTS.data_dir}" in command
    assert "chmod 1777 /tmp" in command


def test_probes_ask_the_agent_where_it_answers() -> None:
    ports = {port["name"]: port["containerPort"] for port in AGENT["ports"]}
    assert ports == {"health": DEFAULTS.health_port, "heartbeats": DEFAULTS.heartbeat_port}
    asked = {kind: AGENT[f"{kind}Probe"]["httpGet"]["path"] for kind in ("liveness", "readiness")}
    assert asked == {"liveness": "/-/liveness", "readiness": "/-/readiness"}
    assert all(AGENT[f"{kind}Probe"]["httpGet"]["port"] == "health" for kind in asked)


def test_an_agent_has_memory_for_a_suite_and_its_other_runs() -> None:
    slots = int(next(one["value"] for one in AGENT["env"] if one["name"] == "JOB_CONCURRENCY"))
    needed = SUITE_LIMITS.memory_mb * 1024**2 + (slots - 1) * BYTES_PER_MAIN_JOB
    assert gibibytes(AGENT["resources"]["limits"]["memory"]) > needed
    assert gibibytes(UNIT["MemoryMax"]) > needed
    assert gibibytes(COMPOSED["mem_limit"].upper()) > needed
    assert COMPOSED["pids_limit"] == int(UNIT["TasksMax"])
    assert gibibytes(AGENT["resources"]["requests"]["memory"]) >= slots * BYTES_PER_MAIN_JOB


def test_an_agent_gets_more_time_to_stop_than_it_takes() -> None:
    assert POD["terminationGracePeriodSeconds"] > DEFAULTS.shutdown_grace_s
    assert int(UNIT["TimeoutStopSec"]) > DEFAULTS.shutdown_grace_s
    assert UNIT["KillMode"] == "mixed"


def test_a_new_release_takes_no_agent_away_before_another_is_ready() -> None:
    assert DEPLOYMENT["spec"]["replicas"] >= 2
    assert DEPLOYMENT["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"] == labels


def test_a_pod_may_send_pings_without_a_capability() -> None:
    (sysctl,) = POD["securityContext"]["sysctls"]
    assert sysctl == {"name": "net.ipv4.ping_group_range", "value": "0 2147483647"}


def test_the_unit_starts_what_the_image_starts() -> None:
    started = UNIT["ExecStart"].split()
    (_, _, *image) = IMAGE.only("ENTRYPOINT").words
    assert started == ["/opt/picket/bin/python", *image[1:]]


def test_the_unit_keeps_its_data_where_the_agent_does_and_lets_runs_pass() -> None:
    assert Path("/var/lib") / UNIT["StateDirectory"] == DEFAULTS.data_dir
    assert UNIT["StateDirectoryMode"] == "0711"
    assert (UNIT["ProtectSystem"], UNIT["PrivateTmp"]) == ("strict", "yes")
    assert UNIT["NoNewPrivileges"] == "yes"


def test_the_unit_keeps_from_scripts_what_outlives_a_run_or_is_not_seen() -> None:
    assert UNIT["RestrictNamespaces"] == "yes"
    assert UNIT["SystemCallFilter"] == "~@keyring @mount"
    assert UNIT["SystemCallErrorNumber"] == "EPERM", "or whoever asks would be killed"
    assert UNIT["SystemCallArchitectures"] == "native"


def test_the_unit_reads_the_key_where_it_is_put() -> None:
    name, _, _ = UNIT["LoadCredential"].partition(":")
    assert UNIT["Environment"] == f"{KEY_FILE}=%d/{name}"


def test_the_unit_does_not_start_again_what_cannot_work() -> None:
    assert UNIT["RestartPreventExitStatus"] == f"{EXIT_BAD_SETTINGS} {EXIT_REFUSED}"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_understands_each_line_of_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT_FILE.name
    unit.write_text(UNIT_FILE.read_text().replace("/opt/picket/bin/python", "/bin/true"))
    command = ("systemd-analyze", "verify", "--man=no", str(unit))
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout + said.stderr) == (0, "")
