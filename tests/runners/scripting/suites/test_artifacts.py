"""Files of tests become artifacts, if they are the run's own."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from zipfile import ZipFile

import pytest

from contract.evidence import PlaywrightEvidence, SuiteTest, TestOutcome
from runners.scripting.node.runtimes import Runtime
from runners.scripting.playwright.outputs import FileNames
from runners.scripting.suites import artifacts as suite_artifacts
from runners.scripting.suites.artifacts import (
    collect_attachments,
    collect_reports,
    write_report,
)
from runners.scripting.suites.project import Project
from runners.scripting.suites.reporter import Attachment, SuiteEvents
from sandbox.workspace import Workspace

NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    workspace = Workspace(tmp_path)
    root = workspace.folder / "suite"
    root.mkdir()
    runtime = Runtime(
        id="x",
        node=tmp_path,
        node_version="24.19.0",
        modules=tmp_path,
        playwright="1.65.1",
        compile_cache=None,
    )
    made = Project(workspace=workspace, root=root, working_dir=root, runtime=runtime)
    made.home.mkdir()
    return made


def left(project: Project, path: str, test: str = "t", **about: Any) -> Attachment:
    file = project.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(path)
    fields = {"name": "trace", "content_type": "application/zip", "retry": 0, **about}
    return Attachment(test=test, path=str(file), **fields)


def facts(*attachments: Attachment, **outcomes: TestOutcome) -> SuiteEvents:
    book = SuiteEvents()
    book.attachments = list(attachments)
    for test, outcome in outcomes.items():
        book.tests[test] = SuiteTest(
            title="x", file="a", line=1, status="passed", outcome=outcome, took_ms=1
        )
    return book


def names(book: SuiteEvents, project: Project) -> list[str]:
    return [artifact.name for artifact in collect_attachments(book, project, FileNames())[0]]


def test_a_file_is_called_as_playwright_calls_it_and_lies_where_artifacts_do(
    project: Project,
) -> None:
    book = facts(
        left(project, "test-results/a-buys/trace.zip"),
        left(project, "test-results/a-buys/video.webm", name="video", content_type="video/webm"),
        left(project, "test-results/a-buys/shot 1.png", name="shot", content_type="image/png"),
        left(project, "out/data.json", name="data", content_type="application/json"),
    )
    found, *_ = collect_attachments(book, project, FileNames())
    assert [(one.name, one.kind) for one in found] == [
        ("a-buys-trace.zip", "trace"),
        ("a-buys-video.webm", "video"),
        ("a-buys-shot-1.png", "screenshot"),
        ("out-data.json", "file"),
    ]
    assert (project.workspace.folder / "a-buys-trace.zip").is_file()


def test_equal_names_are_told_apart(project: Project) -> None:
    book = facts(left(project, "one/x/trace.zip"), left(project, "two/x/trace.zip"))
    assert names(book, project) == ["x-trace.zip", "x-trace-2.zip"]


def test_names_that_no_artifact_may_have_are_made_fit(project: Project) -> None:
    book = facts(left(project, "..odd ü/.hidden"), left(project, "x" * 200 + "/trace.zip"))
    for name in names(book, project):
        assert name.isascii()
        assert not name.startswith(".")
        assert len(name) <= 200


def test_a_name_that_would_show_a_piece_of_a_secret_is_none(project: Project) -> None:
    secrets = FileNames(("hunter2-very-secret", "p@ss.w=rd"))
    long = left(project, f"out/hunter2-very-secret{'z' * 134}.png")
    book = facts(long, left(project, "out/p@ss.w=rd"), left(project, "out/x.hunter2-very-secret"))
    found, *_ = collect_attachments(book, project, secrets)
    assert [one.name for one in found] == ["file.png", "file", "out-x"]


def test_what_is_not_the_runs_own_is_left_alone(project: Project, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    (project.root / "link.zip").symlink_to(secret)
    os.link(secret, project.root / "hard.zip")
    (project.root / "folder").mkdir()
    links = [str(project.root / name) for name in ("link.zip", "hard.zip")]
    paths = [str(secret), *links, "../../secret", "folder", "gone", "a\0b"]
    attachments = [Attachment("t", "trace", path, "application/zip", 0) for path in paths]
    assert names(facts(*attachments), project) == []
    assert secret.read_text() == "s"


def test_files_of_failed_tests_come_first_when_there_are_too_many(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite_artifacts, "MOST_FILES", 1)
    book = facts(
        left(project, "good/trace.zip", "good"),
        left(project, "bad/trace.zip", "bad"),
        good="expected",
        bad="unexpected",
    )
    found, notices, _ = collect_attachments(book, project, FileNames())
    assert [one.name for one in found] == ["bad-trace.zip"]
    assert [line.message[:30] for line in notices] == ["1 files of tests are not kept:"]


def test_files_that_are_too_large_together_are_left_off(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite_artifacts, "MOST_BYTES", 20)
    book = facts(left(project, "first/x.zip"), left(project, "second/x.zip"))
    assert names(book, project) == ["first-x.zip"]


def report(
    project: Project, book: SuiteEvents | None = None, names: Mapping[str, str] = NO_NAMES
) -> Any:
    evidence = PlaywrightEvidence(node_version="24")
    made = write_report(project, book or SuiteEvents(), evidence, names, took_ms=1)
    assert (made.name, made.kind) == ("test-results.json", "report")
    return json.loads((project.workspace.folder / made.name).read_text())


def test_a_suite_that_did_not_end_has_a_report_of_what_is_known(project: Project) -> None:
    project.report.write_text('{"suites": ["by Playwright"]}')
    assert report(project)["suites"] == []


def test_the_report_is_playwrights_and_names_files_as_the_artifacts_are_called(
    project: Project,
) -> None:
    book = SuiteEvents()
    book.end = "failed"
    told = {"path": "/tmp/x/trace.zip", "text": '"path": "/tmp/x/trace.zip"', "at": 1}
    project.report.write_text(json.dumps({"suites": [told, {"path": "/else"}]}, indent=2))
    first, second = report(project, book, {"/tmp/x/trace.zip": "x-trace.zip"})["suites"]
    assert first == {**told, "path": "x-trace.zip"}
    assert second == {"path": "/else"}


def test_a_report_is_written_through_no_link(project: Project, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.py"
    theirs.write_text("theirs")
    (project.workspace.folder / "test-results.json").symlink_to(theirs)
    report(project)
    assert theirs.read_text() == "theirs"


def test_a_report_that_is_a_link_is_none(project: Project, tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text('{"suites": ["theirs"]}')
    project.report.symlink_to(tmp_path / "theirs.json")
    book = SuiteEvents()
    book.end = "passed"
    assert report(project, book)["suites"] == []


def test_a_folder_in_the_reports_place_makes_way(project: Project) -> None:
    place = project.workspace.folder / "test-results.json"
    (place / "deep").mkdir(parents=True)
    report(project)
    assert place.is_file()


def wrote(project: Project, *paths: str) -> SuiteEvents:
    book = SuiteEvents()
    for path in paths:
        file = project.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
        book.written.append(str(file))
    return book


def reports(book: SuiteEvents, project: Project) -> list[str]:
    return [one.name for one in collect_reports(book, project, FileNames()).artifacts]


def test_files_of_reporters_are_called_by_their_paths_in_the_suite(project: Project) -> None:
    book = wrote(project, "junit.xml", "out/blob/report-1.zip", "test-results/.last-run.json")
    assert reports(book, project) == ["junit.xml", "out-blob-report-1.zip"]


def test_a_page_with_its_files_becomes_one_archive(project: Project) -> None:
    book = wrote(project, "out/html/index.html", "out/html/data/a.zip", "out/junit.xml")
    assert sorted(reports(book, project)) == ["out-html.zip", "out-junit.xml"]
    with ZipFile(project.workspace.folder / "out-html.zip") as archive:
        assert sorted(archive.namelist()) == ["data/a.zip", "index.html"]


def test_a_folder_of_many_files_becomes_one_archive(project: Project) -> None:
    book = wrote(project, *(f"allure/{number}.json" for number in range(11)))
    assert reports(book, project) == ["allure.zip"]


def test_a_folder_that_a_reporter_copied_is_kept_with_all_files(project: Project) -> None:
    book = wrote(project, "site/index.html", "site/deep/app.js")
    book.written = [str(project.root / "site")]
    assert reports(book, project) == ["site.zip"]


def test_of_reporters_too_only_the_runs_own_files_are_kept(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("s")
    (project.root / "link").symlink_to(tmp_path / "secret")
    (project.home / "session.json").write_text("s")
    book = SuiteEvents()
    paths = (tmp_path / "secret", project.root / "link", project.home / "session.json", "a\0b")
    book.written = [str(path) for path in paths]
    assert reports(book, project) == []


def test_what_stands_where_a_file_would_go_stays(project: Project) -> None:
    (project.workspace.folder / "x-trace.zip").mkdir()
    (project.workspace.folder / "x-trace-2.zip").symlink_to("/nowhere")
    assert names(facts(left(project, "x/trace.zip")), project) == ["x-trace-3.zip"]


def test_a_file_behind_a_circle_of_links_or_a_name_too_long_is_none(project: Project) -> None:
    (project.root / "round").symlink_to(project.root / "round")
    about = {"test": "t", "name": "trace", "content_type": "application/zip", "retry": 0}
    paths = ("round", "round/x.zip", "y" * 300, "a\0b", ".")
    book = facts(*(Attachment(path=path, **about) for path in paths))
    assert names(book, project) == []


def test_a_folder_in_the_place_of_an_attachment_is_none(project: Project) -> None:
    attachment = left(project, "x/trace.zip")
    (project.root / "x/trace.zip").unlink()
    (project.root / "x/trace.zip").mkdir()
    assert names(facts(attachment), project) == []


def test_a_file_that_would_be_called_like_a_folder_of_the_run_gets_another_name(
    project: Project,
) -> None:
    home = project.workspace.folder / "home"
    book = facts(left(project, "ü/home"), left(project, "-/suite"))
    assert names(book, project) == ["home-2", "suite-2"]
    assert list(home.iterdir()) == []


def test_only_folders_of_the_suite_are_looked_through(project: Project) -> None:
    book = wrote(project, "site/index.html", "site/app.js")
    book.written = ["/", "/proc", str(project.root / "site"), str(project.root / "site")]
    assert reports(book, project) == ["site.zip"]


def test_a_name_that_no_archive_can_have_is_left_off(project: Project) -> None:
    wrote(project, "site/index.html", "site/app.js")
    (project.root / os.fsdecode(b"site/\xff.js")).write_text("x")
    book = SuiteEvents()
    book.written = [str(project.root / "site")]
    assert reports(book, project) == ["site.zip"]
