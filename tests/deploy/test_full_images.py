"""The full agent's image has what scripts run on where the agent looks for it, and so has dev's."""

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from agent.settings_table import SETTINGS
from contract.runtimes import RUNTIMES as RUNTIME_FACTS
from tests.deploy.dockerfile import ROOT, Stage, read_stages

FULL = read_stages(ROOT / "Dockerfile")
FINAL = FULL[-1]
(RUNTIMES,) = [stage for stage in FULL if stage.name == "runtimes"]
HEADERS, DEV = read_stages(ROOT / "Dockerfile.dev")
ENVIRONMENT = "/opt/picket"
NODE = "/opt/picket-node"
CHROMIUM = Path("/usr/lib/chromium/chromium-headless-shell")


def words(stage: Stage, keyword: str) -> list[tuple[str, ...]]:
    return [one.words for one in stage.all(keyword)]


def test_runtimes_are_installed_where_an_agent_of_this_environment_looks() -> None:
    """`find_runtimes` takes the folder `runtimes` of the environment that the agent runs in."""
    (install,) = [run for run in words(RUNTIMES, "RUN") if "runners.installation" in run]
    command = (f"{NODE}/bin/python", "-m", "runners.installation", "--folder")
    assert install[:5] == (*command, f"{ENVIRONMENT}/runtimes")
    assert FINAL.environment["PATH"].startswith(f"{ENVIRONMENT}/bin:")


def test_runtimes_stand_in_the_image_where_they_were_installed() -> None:
    """Their compile cache holds absolute paths."""
    copies = [copy[1:] for copy in words(FINAL, "COPY") if copy[0] == "--from=runtimes"]
    assert copies == [(f"{ENVIRONMENT}/runtimes", f"{ENVIRONMENT}/runtimes")]


def test_our_code_comes_after_what_seldom_changes() -> None:
    """A new release of the agent is a small layer."""
    sources = [copy[0] for copy in words(FINAL, "COPY")]
    assert sources == ["--from=runtimes", "--from=build", "deploy/alive.py"]


def test_node_and_ffmpeg_are_the_locked_ones() -> None:
    for stage in (RUNTIMES, HEADERS):
        (sync,) = [run for run in words(stage, "RUN") if "sync" in run]
        assert {"--locked", "--extra", "scripts", "--no-install-project"} <= set(sync)
        assert stage.environment["UV_PROJECT_ENVIRONMENT"] == NODE


def test_chromium_is_the_distributions() -> None:
    assert any("chromium-headless-shell" in run for run in words(FINAL, "RUN"))


@pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not Debian's here")
def test_chromium_needs_none_of_the_files_that_are_left_out_with_it() -> None:
    """They are left out of this one installation, and of none that builds on the image."""
    (install,) = [one for one in FINAL.all("RUN") if "chromium-headless-shell" in one.text]
    patterns = [word for word in install.words if word.startswith("/usr/lib/")]
    assert patterns
    said = subprocess.run(("ldd", CHROMIUM), capture_output=True, text=True, check=True)
    needed = {
        str(Path(line.split()[2]).resolve()) for line in said.stdout.splitlines() if "=>" in line
    }
    assert any("/libnss3" in library for library in needed)
    assert [one for one in needed for pattern in patterns if fnmatch(one, pattern)] == []
    excluded, config = re.findall(r"/etc/dpkg/\S+", install.text)
    assert excluded == config
    assert f"&& rm {config} " in install.text


def test_runtimes_are_warmed_where_the_browser_and_our_code_are() -> None:
    warms = "runners.scripting.playwright.compile_cache"
    does = [(one.keyword, warms in one.text) for one in FINAL.instructions]
    last_copy = max(at for at, (keyword, _) in enumerate(does) if keyword == "COPY")
    assert last_copy < does.index(("RUN", True)) < does.index(("USER", False))


def test_the_data_folder_can_be_passed_by_the_users_that_runs_have() -> None:
    """Their packages lie below it; each folder in it that is the agent's alone says so itself."""
    (made,) = [run for run in words(FINAL, "RUN") if "/var/lib/picket" in run]
    assert "--mode=0711" in made


def test_what_is_given_the_key_cannot_be_read_by_the_agents_user() -> None:
    """So the kernel shows its scripts neither the memory nor the environment of tini and Python."""
    (made,) = [run for run in words(FINAL, "RUN") if "useradd" in run]
    closed = made[made.index("chmod") :][:4]
    python = "$(readlink --canonicalize /usr/bin/python3)"
    assert closed == ("chmod", "0711", "/usr/bin/tini", python)
    first, *_ = FINAL.only("ENTRYPOINT").words
    assert first == "tini"


def test_the_image_for_developers_is_the_full_one_with_a_compiler_and_headers() -> None:
    assert "ARG AGENT=picket-agent-full" in (ROOT / "Dockerfile.dev").read_text()
    assert DEV.base == "${AGENT}"
    assert any({"build-essential", "python3"} <= set(run) for run in words(DEV, "RUN"))
    home = DEV.environment["NODE_HOME"]
    assert home == f"{ENVIRONMENT}/runtimes/{max(RUNTIME_FACTS)}"
    assert ("--from=headers", "/opt/include", "$NODE_HOME/include") in words(DEV, "COPY")


def test_the_image_for_developers_ends_as_the_user_of_the_full_one() -> None:
    users = [one.text for one in DEV.all("USER")]
    assert users == ["0:0", FINAL.only("USER").text]
    assert DEV.all("ENTRYPOINT") == []


def test_every_image_installs_with_the_same_uv() -> None:
    files = sorted(ROOT.glob("Dockerfile*"))
    assert len(files) == 4
    versions = {found for file in files for found in re.findall(r"uv==\S+", file.read_text())}
    assert len(versions) == 1


def test_an_image_sets_no_variable_that_is_a_setting() -> None:
    """Whoever starts it decides, and the agent finds its runtimes by itself."""
    assert {setting.name for setting in SETTINGS}.isdisjoint(FINAL.environment | DEV.environment)
