"""Of a long foreign text people read the one line that says what is wrong."""

import pytest

from agent.self_test import summarize

LAUNCH = (
    "browserType.launch: Target page, context or browser has been closed\nBrowser logs:\n\n"
    "<launching> /usr/bin/chromium --no-sandbox --user-data-dir=/tmp/picket-run-vbzy2fx5/home/p\n"
    "<launched> pid=16403\n{said}"
    "Call log:\n\x1b[2m  - <launching> /usr/bin/chromium --no-sandbox\x1b[22m\n"
)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("[pid=7][err] /lib/a.so: not found; No such file\n", "/lib/a.so: not found; No such file"),
        (
            (
                "[pid=7][err] [7:9:1123/222752.073947:ERROR:dbus/bus.cc:408] No bus.\n"
                "[pid=7][err] [7:7:1123/222752.1:FATAL:sandbox.cc(132)] No usable sandbox!\n"
                "[pid=7][err] Received signal 6\n"
                "[pid=7][err] #0 0x55d1c3 <unknown>\n"
                "[pid=7][err]   r8: 0000000000000000  r9: 00007ffc1a2b3c4d\n"
                "[pid=7][err] [end of stack trace]\n"
            ),
            "No usable sandbox!",
        ),
        (
            "[pid=7][err] cannot write /tmp/picket-run-vbzy2fx5/home/x: disk full (pid 7)\n",
            "cannot write a temporary file: disk full",
        ),
        (
            "[pid=7] <process did exit: exitCode=1, signal=null>\n[pid=7] starting cleanup\n",
            (
                "browserType.launch: Target page, context or browser has been closed "
                "(exitCode=1, signal=null)"
            ),
        ),
    ],
    ids=["library", "fatal line before a stack", "what changes at each try", "nothing said"],
)
def test_of_a_launch_what_the_browser_said_is_left(said: str, line: str) -> None:
    assert summarize(LAUNCH.format(said=said)) == line


def test_other_texts_are_one_plain_line_without_playwrights_call_log() -> None:
    text = "\x1b[31mapiRequestContext.get:\x1b[39m connect\n ECONNREFUSED.\nCall log:\n  - GET /"
    assert summarize(text) == "apiRequestContext.get: connect ECONNREFUSED"
    assert summarize("╔═══╗\n║ Host lacks libraries ║\n╚═══╝") == "Host lacks libraries"


def test_a_folder_that_is_not_ours_is_left_in() -> None:
    text = "/srv/picket-tools/chromium: /tmp/picket-notes: Permission denied"
    assert summarize(text) == text


def test_a_line_has_a_limit() -> None:
    assert summarize("x" * 5_000) == "x" * 299 + "…"
