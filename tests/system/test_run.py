"""`picket run` against targets that are broken in known ways: the code, and the cause it names."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders.patience import GROWING_S, LONG_S
from tests.builders.rights import can_ping
from tests.system.broken_table import CA, TABLE
from tests.system.broken_targets import Broken
from tests.system.run_command import run


@pytest.fixture
def environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, str]], None]:
    """Sets what a case wants to be set, the authority's file included."""

    def set_all(wanted: dict[str, str]) -> None:
        authority = tmp_path / "authority.pem"
        CA.cert_pem.write_to_path(str(authority))
        for name, value in wanted.items():
            monkeypatch.setenv(name, str(authority) if name == "EXTRA_CA_CERTS" else value)

    return set_all


@pytest.mark.usefixtures("patient_pings")
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(
            broken,
            id=f"{kind}: {broken.how}",
            marks=[
                pytest.mark.skipif(kind == "ICMP" and not can_ping(), reason="no right to ping")
            ],
        )
        for kind, cases in TABLE.items()
        for broken in cases
    ],
)
async def test_a_broken_target_fails_with_its_cause(
    broken: Broken,
    environment: Callable[[dict[str, str]], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment(broken.environment)
    for timeout_s in GROWING_S if broken.runs_out_of_time else (LONG_S,):
        async with broken.target() as document:
            code = await run(document, tmp_path, "--timeout", str(timeout_s))
        out, err = capsys.readouterr()
        assert err == ""
        outcome = json.loads(out)["outcome"]
        message = outcome["failure"]["message"]
        words = [word.format(timeout_s=timeout_s) for word in broken.words]
        if all(word in message for word in words):
            break
    assert (code, outcome["status"], outcome["failure"]["kind"]) == (
        1,
        broken.status,
        broken.kind,
    ), message
    for word in words:
        assert word in message


@pytest.mark.parametrize("kind", list(TABLE))
def test_every_type_is_broken_in_five_ways_at_least(kind: str) -> None:
    assert len(TABLE[kind]) >= 5
