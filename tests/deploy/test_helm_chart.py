"""The Helm chart starts the pods of the manifest, as Helm's own library renders it."""

from collections.abc import Mapping
from typing import Any, Final

import helm_python as helm
import pytest
import yaml

from agent.settings_table import SETTINGS
from contract.release import RELEASE
from tests.deploy.dockerfile import ROOT

CHART: Final = ROOT / "deploy/helm/picket-agent"
SERVICE: Final = {"serviceUrl": "https://picket.example"}


def render(values: Mapping[str, Any]) -> dict[str, Any]:
    """The one object that the chart makes."""
    with helm.Chart.load(str(CHART)) as chart:
        chart.validate_schema(dict(values))
        (text,) = chart.render(dict(values), name="picket-agent", namespace="checks").values()
    made: dict[str, Any] = yaml.safe_load(text)
    return made


def manifest() -> dict[str, Any]:
    """The Deployment that is applied without Helm."""
    _, deployment = yaml.safe_load_all((ROOT / "deploy/kubernetes/agent.yaml").read_text())
    found: dict[str, Any] = deployment
    return found


def test_a_chart_with_its_defaults_starts_the_pods_of_the_manifest() -> None:
    made, plain = render(SERVICE), manifest()
    pod = made["spec"]["template"]["spec"]
    for container in (*pod["containers"], *pod["initContainers"]):
        assert container.pop("imagePullPolicy") == "IfNotPresent"
    assert pod == plain["spec"]["template"]["spec"]
    for name in ("replicas", "strategy"):
        assert made["spec"][name] == plain["spec"][name]


def test_a_deployment_finds_its_own_pods_and_not_those_of_another_release() -> None:
    made = render(SERVICE)
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert made["spec"]["selector"]["matchLabels"] == labels
    assert labels["app.kubernetes.io/instance"] == made["metadata"]["name"]


def test_values_reach_the_pods() -> None:
    made = render(
        {
            **SERVICE,
            "keySecret": "cellar",
            "replicas": 5,
            "image": {"repository": "registry.example/picket-agent-full", "tag": "1.2.3"},
            "settings": {"JOB_CONCURRENCY": "4", "LOG_LEVEL": "debug"},
            "imagePullSecrets": [{"name": "registry"}],
            "nodeSelector": {"pool": "checks"},
            "tolerations": [{"operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
        }
    )
    pod = made["spec"]["template"]["spec"]
    (agent,), (folders,) = pod["containers"], pod["initContainers"]
    assert made["spec"]["replicas"] == 5
    assert agent["image"] == folders["image"] == "registry.example/picket-agent-full:1.2.3"
    told = {one["name"]: one["value"] for one in agent["env"]}
    assert (told["JOB_CONCURRENCY"], told["LOG_LEVEL"]) == ("4", "debug")
    (key,) = [volume["secret"] for volume in pod["volumes"] if volume["name"] == "key"]
    assert key["secretName"] == "cellar"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["nodeSelector"] == {"pool": "checks"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["affinity"] == {"nodeAffinity": {}}


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"serviceUrl": "picket.example"},
        {**SERVICE, "keySecret": ""},
        {**SERVICE, "replica": 3},
        {**SERVICE, "settings": {"API_KEY": "pl_key"}},
        {**SERVICE, "settings": {"JOB_CONCURRENCY": 4}},
    ],
    ids=str,
)
def test_a_chart_refuses_values_that_start_no_agent_or_would_store_the_key(
    wrong: Mapping[str, Any],
) -> None:
    with pytest.raises(helm.HelmError, match=r"values|picket-agent"):
        render(wrong)


def test_a_chart_is_of_this_release_and_sets_what_agents_know() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (RELEASE, RELEASE)
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values["settings"]) <= {setting.name for setting in SETTINGS}
    severe = [one for one in helm.lint(str(CHART))["messages"] if one["severity"] > 1]
    assert {one["path"] for one in severe} <= {"values.yaml", "templates/"}
    assert all("/serviceUrl" in one["error"] for one in severe), "only the address is missing"
