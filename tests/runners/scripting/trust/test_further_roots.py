"""Which roots are the operator's own."""

from pathlib import Path

import pytest
import trustme

from runners.scripting.trust.roots import read_further_roots


def pem() -> str:
    return trustme.CA().cert_pem.bytes().decode()


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def bodies(found: str | None) -> list[str]:
    """The certificates as lines alone, so that it does not matter how they are wrapped."""
    pieces = (found or "").split("-----END CERTIFICATE-----")[:-1]
    return ["".join(piece.partition("-----BEGIN CERTIFICATE-----")[2].split()) for piece in pieces]


@pytest.fixture
def distributions(tmp_path: Path) -> Path:
    folder = tmp_path / "distribution"
    (folder / "mozilla").mkdir(parents=True)
    return folder


def test_what_was_added_to_the_systems_bundle_counts_beside_the_extra_ones(
    tmp_path: Path, distributions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common, added, extra = pem(), pem(), pem()
    written(distributions / "mozilla/Common.crt", common)
    bundle = written(tmp_path / "bundle.crt", f"# roots\n{common}{added}\n{extra}")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    found = read_further_roots(written(tmp_path / "extra.pem", extra), distributions=distributions)
    assert bodies(found) == bodies(extra + added)


def test_where_the_distribution_tells_nothing_the_extra_ones_alone_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra, nowhere = pem(), tmp_path / "nowhere"
    monkeypatch.setenv("SSL_CERT_FILE", str(written(tmp_path / "bundle.crt", pem())))
    assert read_further_roots(None, distributions=nowhere) is None
    found = read_further_roots(written(tmp_path / "extra.pem", extra), distributions=nowhere)
    assert bodies(found) == bodies(extra)


def test_what_is_no_certificate_in_a_bundle_is_left_aside(
    tmp_path: Path, distributions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = pem()
    broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"
    bundle = written(tmp_path / "bundle.crt", f"{broken}{mine}-----END CERTIFICATE-----")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    assert bodies(read_further_roots(None, distributions=distributions)) == bodies(mine)


def test_a_machine_without_a_bundle_has_none(
    tmp_path: Path, distributions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone"))
    assert read_further_roots(None, distributions=distributions) is None
