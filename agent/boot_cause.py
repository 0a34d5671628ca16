"""The one line that people read of why the boot check of a type failed. Pure."""

import re
from typing import Final

_MOST_CHARS: Final = 300
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
_CALL_LOG: Final = re.compile(r"^\s*Call log:.*", re.DOTALL | re.MULTILINE)
_BROWSER_LOGS: Final = re.compile(r"^\s*Browser logs:.*", re.DOTALL | re.MULTILINE)
_FRAMES: Final = re.compile(r"[\u2500-\u257f]+")
_SAID: Final = re.compile(r"^\[pid=\d+\]\[err\] (.*)", re.MULTILINE)
"""A line that the browser printed."""
_EXIT: Final = re.compile(r"<process did exit: (.*?)>")
_LOG_HEAD: Final = re.compile(r"^\[[\d:/.]+:(?P<level>[A-Z]+\d*):[^\]]*\] ?")
"""Of Chromium: process, thread, time, level and line of its source."""
_STACK: Final = re.compile(r"\s*(?:#\d+ 0x|\[end of stack trace\]|(?:\w+: [0-9a-f]{16}\s*)+$)")
_PID: Final = re.compile(r"[([]?\bpid[=: ]+\d+[])]?:? ?", re.IGNORECASE)
_OUR_FOLDER: Final = re.compile(r"/[\w./-]*/(?:new-)?picket-[a-z]+-\w{8}(?:/[^\s'\":;,]*)?")
"""A temporary folder of ours, or what is in it: another at each try."""
_TEMPORARY: Final = "a temporary file"


def summarize(text: str) -> str:
    """What is wrong, in one line: what the browser printed last where a browser did not start.

    Without what changes at each try: process ids and temporary folders of ours.
    """
    plain = _CALL_LOG.sub("", _ESCAPES.sub("", text))
    words = _last_words(plain)
    if words is None:
        words = _FRAMES.sub(" ", _BROWSER_LOGS.sub("", plain))
        if (ended := _EXIT.search(plain)) is not None:
            words = f"{words.strip()} ({ended[1]})"
    words = _OUR_FOLDER.sub(_TEMPORARY, _PID.sub("", words))
    line = " ".join("".join(one if one.isprintable() else " " for one in words).split())
    return line.rstrip(".") if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1]}…"


def _last_words(plain: str) -> str | None:
    """The fatal line of the browser, else its last one outside a stack. None: it said nothing."""
    said = [line for line in _SAID.findall(plain) if line.strip() and not _STACK.match(line)]
    heads = [_LOG_HEAD.match(line) for line in said]
    fatal = [
        line
        for line, head in zip(said, heads, strict=True)
        if head is not None and head["level"] == "FATAL"
    ]
    last = (fatal or said)[-1:]
    return _LOG_HEAD.sub("", last[0]) if last else None
