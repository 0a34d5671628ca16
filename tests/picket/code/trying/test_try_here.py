"""`picket test` without a service: every check of a folder, a line for each, and JUnit XML."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree as ET

import pytest

from picket.__main__ import main
from picket.errors import ExitCode

SECRET = "correct-horse-battery"
GROUP = """
kind: group
name: Shop
variables: { TENANT: north, TOKEN: "${SHOP_TOKEN}" }
setupScript: "console.log('of the group', process.env.TENANT)"
apiCheckDefaults:
  url: {url}
  headers: [{ key: x-tenant, value: "{{TENANT}}" }]
  assertions: [{ source: TEXT_BODY, comparison: CONTAINS, target: north }]
"""
CHECKS = """
type: API
name: Cart
group: Shop
request: { method: GET, url: "{{GROUP_BASE_URL}}/cart" }
---
type: API
name: Secret
group: Shop
request: { method: GET, url: "{{GROUP_BASE_URL}}/{{TOKEN}}" }
assertions: [{ source: TEXT_BODY, comparison: EQUALS, target: south }]
---
type: HEARTBEAT
name: Backup
periodSeconds: 60
graceSeconds: 60
"""
ALONE = 'type: URL\nname: Nobody\nrequest: { url: "http://127.0.0.1:9/" }\n'


class _Echo(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"{self.path} {self.headers.get('x-tenant')}".encode()
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    monkeypatch.delenv("SERVICE_URL", raising=False)
    root = tmp_path / "checks"
    (root / "network").mkdir(parents=True)
    (root / "group.yaml").write_text(GROUP.replace("{url}", site))
    (root / "shop.yaml").write_text(CHECKS)
    (root / "network/nobody.yaml").write_text(ALONE)
    return root


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was printed, without times."""
    return [line.partition(")")[0] for line in capsys.readouterr().out.splitlines()]


def test_each_check_runs_with_the_settings_of_its_group(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", str(folder)]) == ExitCode.FAILED
    said = lines(capsys)
    assert "✔ PASSED  Cart (shop.yaml:2" in said
    assert "✘ FAILED  Secret (shop.yaml:7" in said
    assert "- SKIPPED  Backup (shop.yaml:13" in said
    assert "✘ FAILED  Nobody (network/nobody.yaml" in said
    assert "    127.0.0.1:9 refused the connection (nothing listens there" in said
    assert said[-1] == "1 of 3 passed, 1 skipped."


def test_no_value_of_the_environment_is_printed_or_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "out/report.xml"
    main(["test", str(folder), "--junit", str(report)])
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err + report.read_text()
    assert "/*********" in report.read_text()


def test_the_report_has_a_suite_for_each_group_or_folder_and_the_reasons(
    folder: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.xml"
    main(["test", str(folder), "--junit", str(report)])
    root = ET.parse(report).getroot()
    require_common_schema(root)
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"Shop", "checks", "network"}
    failure = suites["network"].find("testcase/failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("127.0.0.1:9 refused the connection")
    assert str(failure.text).startswith("✘ FAILED  Nobody (URL)")
    log = suites["Shop"].find("testcase[@name='Cart']/system-out")
    assert log is not None
    assert "of the group north" in str(log.text)
    assert suites["checks"].find("testcase[@name='Backup']/skipped") is not None


ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
    "system-out": set(),
}
CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["testcase"],
    "testcase": ["skipped", "error", "failure", "system-out"],
}
"""What Jenkins, GitLab and GitHub's reporters have in common, in the order of their schemas."""


def require_common_schema(element: ET.Element) -> None:
    assert set(element.attrib) <= ATTRIBUTES[element.tag]
    order = CHILDREN.get(element.tag, [])
    places = [order.index(child.tag) for child in element]
    assert places == sorted(places)
    if element.tag.startswith("testsuite"):
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert int(str(element.get(name))) == len(list(element.iter(tag)))
    if "time" in element.attrib:
        assert float(element.attrib["time"]) >= 0
    for child in element:
        require_common_schema(child)


def test_variables_of_the_command_win(
    tmp_path: Path, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check = tmp_path / "a.yaml"
    check.write_text(
        'type: API\nname: A\nvariables: { BASE: "http://127.0.0.1:9" }\n'
        'request: { method: GET, url: "{{BASE}}/" }\n'
    )
    assert main(["test", str(check)]) == ExitCode.FAILED
    assert main(["test", str(check), "--env", f"BASE={site}"]) == ExitCode.OK
    assert main(["test", str(check), "--env", "BASE"]) == ExitCode.BAD_INPUT
    assert "--env is BASE; use KEY=VALUE" in capsys.readouterr().err


def test_wrong_files_are_named_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "wrong.yaml").write_text("type: URL\nname: A\nrequest: {}\n")
    assert main(["test", str(folder)]) == ExitCode.BAD_INPUT
    said = capsys.readouterr()
    assert "wrong.yaml: $.request.url is missing" in said.err
    assert said.out == ""


def test_a_suite_whose_code_is_at_a_service_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = tmp_path / "a.yaml"
    check.write_text(f"type: PLAYWRIGHT\nname: A\ncodeBundlePath: {'a' * 64}\n")
    assert main(["test", str(check)]) == ExitCode.OK
    assert (
        "Its code is at a service (codeBundlePath); give a --location." in capsys.readouterr().out
    )
