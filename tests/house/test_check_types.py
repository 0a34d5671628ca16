"""A check type is one Spec, one runner and one module of the API; few others know it by name."""

import re
from typing import Final

from tests.house.test_house import ROOT, modules

NAMING_A_TYPE: Final = frozenset(
    {
        "agent/self_test.py",
        "contract/checks.py",
        "contract/result.py",
        "picket/doctor/host.py",
        "picket/report.py",
        "picket/up/starter_checks.py",
        "runners/judging/judge.py",
        "runners/tools.py",
        "runners/registry.py",
        "service/checks/types/registry.py",
    }
)
"""The modules that name ICMP, a type like any other; this list may only become shorter."""


def test_a_check_type_is_named_in_few_modules_and_never_in_more() -> None:
    found = {
        str(path)
        for path in modules()
        if "icmp" not in str(path).lower()
        and re.search("icmp", (ROOT / path).read_text(), re.IGNORECASE)
    }
    assert found - NAMING_A_TYPE == set(), "read it from the Spec, or from the type's own module"
    assert NAMING_A_TYPE - found == set(), "take these from the list"
