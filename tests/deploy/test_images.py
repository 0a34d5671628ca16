"""The images hold what their program needs, and what they promise is what the code does."""

import os
import re
import socket
import subprocess
import sys
import tomllib
from dataclasses import dataclass, replace
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from agent.settings_table import SETTINGS
from contract.release import RELEASE
from service.settings import Settings
from tests.deploy.closure import brought_by, house_packages, imported_by, libraries
from tests.deploy.dockerfile import ROOT, Stage, image_stages, read_arguments, read_stages


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
    def extras(self) -> tuple[str, ...]:
        return (self.program, "s3", "clickhouse") if self.program == "service" else (self.program,)

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
    {
        "SERVICE_PORT": str(Settings().port),
        "TRACE_VIEWER_PORT": str(Settings().trace_viewer_port),
    },
    "/var/lib/picket-service",
)
ALL = (AGENT, FULL, SERVICE)
IMAGES = pytest.mark.parametrize("image", ALL, ids=["light agent", "full agent", "service"])
FILES = sorted(ROOT.glob("Dockerfile*"))
EVERY_FILE = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))


@IMAGES
def test_every_package_that_the_program_imports_is_copied(image: Image) -> None:
    assert house_packages(imported_by(image.program)) <= image.build.copied


@IMAGES
def test_every_library_that_the_program_imports_comes_with_its_extra(image: Image) -> None:
    missing = libraries(imported_by(image.program)) - brought_by(*image.extras)
    assert missing == set(), f"not in the extras {image.extras}"


@IMAGES
def test_the_environment_is_the_lock_files_with_the_extras_of_the_program(image: Image) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    syncs = [one.words for one in image.build.all("RUN") if "sync" in one.words]
    assert syncs
    for words in syncs:
        assert {"--locked", "--no-default-groups"} <= set(words)
        named = [words[at + 1] for at, word in enumerate(words) if word == "--extra"]
        assert named == list(image.extras)
        assert set(named) <= project["optional-dependencies"].keys()
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
    whole = {"deploy/alive.py": "deploy/*.py", "deploy/first_secrets.py": "deploy/*.py"}
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
    stages = image_stages(image.stages)
    words = {word for stage in stages for one in stage.all("RUN") for word in one.words}
    assert not words & {"pip", "python3-pip", "python3-venv", "gcc", "binutils", "build-essential"}
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
def test_the_release_is_told_to_the_build_and_changes_no_layer(image: Image) -> None:
    assert image.final.labels["org.opencontainers.image.version"] == "${VERSION}"
    assert image.final.labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert image.final.only("ARG").text == "VERSION=unknown"
    assert [one.keyword for one in image.final.instructions][-2:] == ["ARG", "LABEL"]


def test_one_command_builds_every_image_and_labels_it_with_the_release() -> None:
    command = (
        "make",
        "--dry-run",
        "images",
        "ENGINE=podman",
        "ARGS=--build-arg BASE=debian:12-slim",
    )
    # `make test` hands its own variables on, and a make below another one prints its folder.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, check=True)
    builds = [line.split() for line in done.stdout.splitlines()]
    assert sorted(words[words.index("-f") + 1] for words in builds) == [file.name for file in FILES]
    for words in builds:
        assert words[:2] == ["podman", "build"]
        assert {f"VERSION={RELEASE}", "BASE=debian:12-slim"} <= set(words)


@EVERY_FILE
def test_the_base_is_a_build_argument(file: Path) -> None:
    assert read_arguments(file)["BASE"] == "debian:13-slim"
    stages = read_stages(file)
    bases = {stage.base for stage in stages} - {stage.name for stage in stages}
    assert "${BASE}" in bases
    assert bases <= {"${BASE}", "${AGENT}"}


@EVERY_FILE
def test_no_path_depends_on_the_version_of_python(file: Path) -> None:
    """Each base has another."""
    assert re.findall(r"\S*python-?3[.*?\[]\S*", file.read_text()) == []


@EVERY_FILE
def test_no_program_in_an_image_changes_its_user(file: Path) -> None:
    """Whatever apt installs loses its bits in the same layer, and so does what the base has."""
    installs = [
        one.text
        for stage in image_stages(read_stages(file))
        for one in stage.all("RUN")
        if "apt-get install" in one.text
    ]
    assert installs
    for text in installs:
        _, _, after = text.partition("apt-get install")
        assert "&& find / -xdev -perm /6000 -exec chmod a-s {} + &&" in after


def left_out(image: Image) -> set[str]:
    """The packages that uv.lock has for the program and its image has not."""
    syncs = [one.words for one in image.build.all("RUN") if "sync" in one.words]
    named = {
        frozenset(words[at + 1] for at, word in enumerate(words) if word == "--no-install-package")
        for words in syncs
    }
    (packages,) = named
    return set(packages)


def run_without(packages: set[str], statement: str, *arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a Python in which these packages cannot be imported."""
    holders = packages_distributions().items()
    modules = {name for name, held_by in holders if held_by[0].lower() in packages}
    assert len(modules) >= len(packages)
    program = f"import sys; sys.modules.update(dict.fromkeys({sorted(modules)})); {statement}"
    command = (sys.executable, "-c", program, *arguments)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@IMAGES
def test_a_program_starts_without_the_packages_that_its_image_leaves_out(image: Image) -> None:
    packages = left_out(image)
    assert packages
    assert packages <= brought_by(image.program)
    assert not packages & libraries(imported_by(image.program))
    assert run_without(packages, f"import {image.program}.__main__") == (0, "")


@pytest.mark.parametrize("image", [AGENT, FULL], ids=["light agent", "full agent"])
def test_the_command_line_reports_without_the_packages_that_its_image_leaves_out(
    image: Image, tmp_path: Path
) -> None:
    check = tmp_path / "check.yaml"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check.write_text(f'type: TCP\nrequest: {{hostname: "127.0.0.1", port: {port}}}\n')
        start = "from picket.__main__ import main; main()"
        assert run_without(left_out(image), start, "run", str(check)) == (0, "")
    assert run_without(left_out(image), "import picket.doctor.command") == (0, "")
