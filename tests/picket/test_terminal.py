import io

import pytest
from rich.padding import Padding
from rich.text import Text

from picket.__main__ import main
from picket.errors import ExitCode
from picket.terminal import Terminal

SENTENCE = "Nothing of all that was looked for could be found. " * 20


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names a width gets it."""
    for name in ("COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def test_a_pipe_gets_each_line_whole_and_without_blanks_at_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Terminal().print(Padding(Text(f"{SENTENCE}\nshort   "), (0, 0, 0, 2)))
    assert capsys.readouterr().out == f"  {SENTENCE.rstrip()}\n  short\n"


def test_a_pipe_gets_each_line_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    below = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BufferedWriter(below), "utf-8"))  # type: ignore[arg-type]
    terminal = Terminal()
    terminal.out("one")
    assert below.getvalue() == b"one\n"


def test_the_report_of_a_run_in_a_pipe_has_the_failure_on_one_line(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path_factory.mktemp("run") / "check.yaml"
    url = f"http://127.0.0.1:9/{'long/' * 40}"
    rule = f"source: JSON_BODY, property: '$.{'long' * 40}', comparison: EQUALS, target: x"
    file.write_text(f"type: API\nrequest: {{url: '{url}'}}\nassertions: [{{{rule}}}]\n")
    assert main(["run", str(file)]) == ExitCode.FAILED
    out = capsys.readouterr().out
    assert "\n  127.0.0.1:9 refused the connection (nothing listens there).\n" in out
    assert all(line == line.rstrip() for line in out.splitlines())
