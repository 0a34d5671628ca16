"""What a suite's reporters write is kept, and our report is the one that Playwright writes."""

import json
import os
import re
import subprocess
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import pytest

from contract.runtimes import RUNTIMES
from runners.playwright import PlaywrightRunner
from runners.runner import Observation
from tests.builders.patience import LONG_S
from tests.builders.scripts import runtimes_here
from tests.builders.suites import SUITES, a_bundle, a_suite_context, a_written_suite
from tests.builders.told_suites import changed, said, told

pytestmark = pytest.mark.timeout(300)
SUITE = SUITES / "reporters"
OF_THE_RUN = {"argv", "duration", "startTime", "workerIndex", "path", "reporter"}
"""Fields of a report that differ from run to run, and from one set of reporters to another."""


def plain(value: Any, root: str) -> Any:
    """A report without what differs from run to run."""
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if key not in OF_THE_RUN}
        if isinstance(kept.get("body"), str):  # of an attachment, which may name the suite's folder
            kept["body"] = b64decode(kept["body"]).decode("latin-1")
        return {key: plain(one, root) for key, one in kept.items()}
    if isinstance(value, list):
        return [plain(one, root) for one in value]
    return value.replace(root, "ROOT") if isinstance(value, str) else value


def attachments(report: Any) -> list[dict[str, Any]]:
    """All attachments in a report, at any depth."""
    if isinstance(report, list):
        return [one for part in report for one in attachments(part)]
    if not isinstance(report, dict):
        return []
    return [*report.get("attachments", []), *attachments(list(report.values()))]


async def kept(folder: Path, spec: Any) -> tuple[Observation, dict[str, bytes], str]:
    """A run with the contents of its artifacts, and where its suite was."""
    async with a_suite_context(folder, timeout_s=4 * LONG_S) as ctx:
        ran = await PlaywrightRunner().observe(spec, ctx)
        place = ctx.workspace.folder
        files = {one.name: (place / one.name).read_bytes() for one in ran.artifacts}
        return ran, files, str(place.resolve() / "suite")


def text_files(folder: Path) -> Mapping[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def by_plain_playwright(folder: Path, runtime_id: str) -> tuple[Any, str]:
    """What `playwright test --reporter=json` prints for the suite, and where it was."""
    runtime = runtimes_here().get(runtime_id)
    for name, content in text_files(SUITE).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    (folder / "package.json").write_text('{"name": "suite", "private": true}')
    (folder / "node_modules").symlink_to(runtime.modules)
    done = subprocess.run(
        [runtime.node, "node_modules/@playwright/test/cli.js", "test", "--reporter=json"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout), str(folder.resolve())


@pytest.mark.parametrize("runtime_id", RUNTIMES)
async def test_the_report_is_what_plain_playwright_reports_as_json(
    tmp_path: Path, runtime_id: str
) -> None:
    (tmp_path / "plain").mkdir()
    theirs, their_root = by_plain_playwright(tmp_path / "plain", runtime_id)
    spec = a_written_suite(tmp_path, text_files(SUITE))
    ran, files, root = await kept(Path("/"), changed(spec, runtime_id=runtime_id))
    assert told(ran).counts.failed == 1, said(ran)
    ours = json.loads(files["test-results.json"])
    assert plain(ours, root) == plain(theirs, their_root)
    assert len(attachments(ours)) >= 9
    assert {one["path"] for one in attachments(ours) if "path" in one} <= files.keys()


async def test_files_of_the_suites_own_reporters_are_kept_and_no_others(
    tmp_path: Path, playwright_version: str
) -> None:
    spec = a_bundle(tmp_path, "reporters", lock=f"versions/{playwright_version}")
    ran, files, root = await kept(tmp_path, spec)
    assert "out-own.json" in files, (list(files), said(ran))
    assert "was stopped after" not in str(said(ran))  # as by a report that is served to a browser
    own = json.loads(files["out-own.json"])
    assert plain(own, root) == plain(json.loads(files["test-results.json"]), root), said(ran)
    assert ET.fromstring(files["out-junit.xml"].decode()).get("tests")
    assert files["out-end.txt"] == b"failed"
    assert b"is broken failed" in files["out-each.txt"]
    assert b"holds a lamp" in files["out-stream.log"]
    (html,) = (name for name in files if name.startswith("out-html"))
    (blob,) = (name for name in files if re.fullmatch(r"out-blob-report.*\.zip", name))
    for name, member in ((html, "index.html"), (blob, "report.jsonl")):
        (tmp_path / "report.zip").write_bytes(files[name])
        with ZipFile(tmp_path / "report.zip") as archive:
            assert member in archive.namelist()
    assert not any("session" in name or "by-a-test" in name for name in files)
    kinds = {one.name: one.kind for one in ran.artifacts}
    assert [name for name, kind in kinds.items() if kind == "report"] == ["test-results.json"]
