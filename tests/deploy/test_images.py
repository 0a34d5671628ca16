"""The images hold what their program needs, and what they promise is what the code does."""

import re
import tomllib
from dataclasses import dataclass, replace

import pytest

from agent.settings_table import SETTINGS
from contract.release import RELEASE
from service.settings import Settings
from tests.deploy.closure import brought_by, house_packages, imported_by, libraries
from tests.deploy.dockerfile import ROOT, Stage, read_stages


def agents_default(name: str) -> str:
    return next(setting.default for setting in SETTINGS if setting.name == name)


@dataclass(frozen=True, slots=True)
class Image:
    file: str
    program: str
    """The package that is started, and the name of its extra."""
    ports: dict[str, str]
    """The program's defaults by their variables; the first is the health check's."""
    data_dir: str

    @property
    def stages(self) -> list[Stage]:
        return read_stages(ROOT / self.file)

    @property
    def build(self) -> Stage:
        return next(stage for stage in self.stages if stage.name == "build")

    @property
    def final(self) -> Stage:
        return self.stages[-1]


AGENT = Image(
    "Dockerfile.uptime",
    "agent",
    {name: agents_default(name) for name in ("AGENT_HEALTH_PORT", "HEARTBEAT_PORT")},
    agents_default("AGENT_DATA_DIR"),
)
FULL = replace(AGENT, file="Dockerfile")
SERVICE = Image(
    "Dockerfile.service",
    "service",
    {"SERVICE_PORT": str(Settings().port)},
    "/var/lib/picket-service",
)
ALL = (AGENT, FULL, SERVICE)
IMAGES = pytest.mark.parametrize("image", ALL, ids=["light agent", "full agent", "service"])


@IMAGES
def test_every_package_that_the_program_imports_is_copied(image: Image) -> None:
    assert house_packages(imported_by(image.program)) <= image.build.copied


@IMAGES
def test_every_library_that_the_program_imports_comes_with_its_extra(image: Image) -> None:
    missing = libraries(imported_by(image.program)) - brought_by(image.program)
    assert missing == set(), f"not in the extra {image.program}"


@IMAGES
def test_the_environment_is_the_lock_files_with_one_extra_of_the_project(image: Image) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    syncs = [one.words for one in image.build.all("RUN") if "sync" in one.words]
    assert syncs
    for words in syncs:
        assert {"--locked", "--no-default-groups"} <= set(words)
        named = [words[at + 1] for at, word in enumerate(words) if word == "--extra"]
        assert named == [image.program]
        assert named[0] in project["optional-dependencies"]
    assert "--no-editable" in syncs[-1]


@IMAGES
def test_what_is_copied_is_there(image: Image) -> None:
    for stage in image.stages:
        for source in stage.copied:
            assert (ROOT / source).exists(), source


def test_a_build_sees_what_the_images_copy_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if not line.startswith("#")]
    let_in = {line[1:] for line in patterns if line.startswith("!")}
    copied = {source for image in ALL for stage in image.stages for source in stage.copied}
    whole = {"deploy/alive.py": "deploy/*.py", "deploy/first_key.py": "deploy/*.py"}
    for part in ("__init__.py", "installation", "harness/runtimes"):
        whole[f"runners/{part}"] = "runners"
    assert patterns[0] == "*"
    assert let_in == {whole.get(source, source) for source in copied}


@IMAGES
def test_builds_use_the_uv_that_set_up_uses(image: Image) -> None:
    set_up = re.search(r"^UV_VERSION=(\S+)$", (ROOT / "scripts/setup.sh").read_text(), re.MULTILINE)
    assert set_up is not None
    runs = [one for stage in image.stages for one in stage.all("RUN")]
    installs = [word for one in runs for word in one.words if "==" in word]
    assert installs == [f"uv=={set_up[1]}"]


@IMAGES
def test_the_final_stage_has_neither_compiler_nor_installer(image: Image) -> None:
    bases = {stage.name: stage for stage in image.stages}
    base = bases[image.final.base]
    assert base.base == "debian:12-slim"
    words = {
        word for stage in (base, image.final) for one in stage.all("RUN") for word in one.words
    }
    assert not words & {"pip", "python3-pip", "python3-venv", "gcc", "build-essential"}
    assert not any(word.startswith("/opt/uv") for word in words)
    from_build = [one.words for one in image.final.all("COPY") if "--from=build" in one.words]
    assert from_build == [("--from=build", "/opt/picket", "/opt/picket")]


@IMAGES
def test_what_apt_downloads_stays_in_no_layer(image: Image) -> None:
    for stage in image.stages:
        for one in stage.all("RUN"):
            if "apt-get" in one.words:
                assert "--no-install-recommends" in one.words
                assert one.text.endswith("rm -rf /var/lib/apt/lists/*")


@IMAGES
def test_the_user_is_a_number_and_not_root_and_owns_the_data_directory(image: Image) -> None:
    user, group = image.final.only("USER").text.split(":")
    assert int(user) > 0
    assert int(group) > 0
    (making,) = [one for one in image.final.all("RUN") if "useradd" in one.words]
    assert {user, f"--owner={user}", f"--group={group}", image.data_dir} <= set(making.words)


@IMAGES
def test_the_exposed_ports_are_the_programs_defaults(image: Image) -> None:
    assert list(image.final.only("EXPOSE").words) == list(image.ports.values())


@IMAGES
def test_the_program_starts_without_a_shell_below_a_first_process_that_passes_signals_on(
    image: Image,
) -> None:
    words = image.final.only("ENTRYPOINT").words
    assert words == ("tini", "--", "python", "-I", "-m", image.program)
    assert (ROOT / image.program / "__main__.py").exists()
    assert image.final.environment["PATH"].startswith("/opt/picket/bin:")


@IMAGES
def test_the_health_check_asks_the_programs_own_port(image: Image) -> None:
    *_, script, variable, default, path = image.final.health_command
    assert script == "/opt/picket/deploy/alive.py"
    assert "deploy/alive.py" in image.final.copied
    assert (variable, default) == next(iter(image.ports.items()))
    assert path.startswith("/")


def test_the_service_keeps_its_data_in_the_volume() -> None:
    assert SERVICE.final.environment["SERVICE_DATA_DIR"] == SERVICE.data_dir


@IMAGES
def test_the_command_line_is_there_where_it_works(image: Image) -> None:
    removed = any("/opt/picket/bin/picket" in one.words for one in image.build.all("RUN"))
    works = {"agent", "picket"} <= image.build.copied
    assert works != removed


@IMAGES
def test_the_label_tells_the_release(image: Image) -> None:
    assert image.final.labels["org.opencontainers.image.version"] == RELEASE
    assert image.final.labels["org.opencontainers.image.licenses"] == "Apache-2.0"
