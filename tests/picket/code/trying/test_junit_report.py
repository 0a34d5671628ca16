"""JUnit XML holds any text."""

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from picket.code.trying.junit_report import junit_report
from picket.code.trying.verdicts import Tried, Verdict


@given(st.text(), st.text(), st.sampled_from(Verdict))
def test_any_text_makes_a_report_that_can_be_read(name: str, reason: str, verdict: Verdict) -> None:
    tried = Tried(
        name=name, source="a.yaml", suite=name, verdict=verdict, reason=reason, log=reason
    )
    root = ET.fromstring(junit_report([tried, tried]))
    assert len(list(root.iter("testcase"))) == 2
    assert root.get("failures") == ("2" if verdict.is_bad and verdict is not Verdict.ERROR else "0")
