import pytest

from contract.suggestions import suggest_name


@pytest.mark.parametrize(
    ("name", "meant"),
    [("baseUrl", "baseURL"), ("timeOut", "timeout"), ("freqency", "frequency"), ("workers", None)],
)
def test_a_slip_of_the_pen_is_understood(name: str, meant: str | None) -> None:
    assert suggest_name(name, ("baseURL", "timeout", "frequency", "use")) == meant


SHORT = ("secret", "locked", "value", "key", "ca")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(("secert", "secret"), ("screte", "secret"), ("secrte", "secret"), ("escret", "secret")),
        *(
            ("LCOKED", "locked"),
            ("vlaue", "value"),
            ("kye", "key"),
            ("yek", None),
            ("scerte", None),
        ),
        *(("ac", None), ("valve", None), ("terces", None), ("Secret", "secret")),
    ],
)
def test_a_letter_at_another_place_is_a_slip_in_short_names_too(
    name: str, meant: str | None
) -> None:
    assert suggest_name(name, SHORT, alike=0.85) == meant
