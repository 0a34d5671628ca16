"""Writes what came of checks as JUnit XML, which CI systems read. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from picket.code.trying.verdicts import Tried, Verdict

_NOT_IN_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_report(tried: Sequence[Tried]) -> bytes:
    """One test suite for each group or folder, one test case for each check."""
    suites: dict[str, list[Tried]] = {}
    for one in tried:
        suites.setdefault(one.suite, []).append(one)
    whole = {key: value for key, value in _numbers(tried).items() if key != "skipped"}
    root = ET.Element("testsuites", {"name": "picket test", **whole})
    for name, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", {"name": _clean(name), **_numbers(cases)})
        for case in cases:
            _add(suite, case)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _numbers(cases: Iterable[Tried]) -> dict[str, str]:
    listed = list(cases)
    errors = [one for one in listed if one.verdict is Verdict.ERROR]
    bad = [one for one in listed if one.verdict.is_bad and one.verdict is not Verdict.ERROR]
    skipped = [one for one in listed if one.verdict is Verdict.SKIPPED]
    return {
        "tests": str(len(listed)),
        "failures": str(len(bad)),
        "errors": str(len(errors)),
        "skipped": str(len(skipped)),
        "time": f"{sum(one.took_s for one in listed):.3f}",
    }


def _add(suite: ET.Element, case: Tried) -> None:
    names = {"name": _clean(case.name), "classname": _clean(case.source)}
    element = ET.SubElement(suite, "testcase", {**names, "time": f"{case.took_s:.3f}"})
    reason = _clean(case.reason or "")
    if case.verdict is Verdict.SKIPPED:
        ET.SubElement(element, "skipped", {"message": reason})
    elif case.verdict.is_bad:
        tag = "error" if case.verdict is Verdict.ERROR else "failure"
        problem = ET.SubElement(element, tag, {"message": reason, "type": case.verdict.value})
        problem.text = _clean(case.details or case.reason or "")
    lines = [_clean(case.log)] if case.log else []
    lines += [case.link] if case.link else []
    if case.verdict is Verdict.DEGRADED and reason:
        lines.insert(0, f"DEGRADED: {reason}")
    if lines:
        ET.SubElement(element, "system-out").text = "\n".join(lines)


def _clean(text: str) -> str:
    """Without what XML 1.0 cannot hold."""
    return _NOT_IN_XML.sub("·", text)
