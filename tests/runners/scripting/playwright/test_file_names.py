"""A file's name leaves with a result: no piece of a secret is in it."""

from pathlib import Path

import pytest

from runners.scripting.playwright.outputs import FileNames

SECRET = "p@ss/w=rd-of-hunter"


def fit(path: str, secret: str = SECRET) -> str | None:
    place = Path(path)
    return FileNames((secret,)).fit(place, place.name)


@pytest.mark.parametrize(
    ("path", "name"),
    [("out/shot.png", "shot.png"), ("out/a shot ü.png", "a-shot-.png"), ("out/..x.png", "x.png")],
)
def test_a_name_is_made_fit(path: str, name: str) -> None:
    assert fit(path) == name


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        (f"out/{SECRET}.png", SECRET),
        ("out/ap%40ss%2Fw%3Drd-of-hunter.png", SECRET),
        ("out/p@ss-very-secret.png", "p@ss-very-secret"),
        ("out/" + "z" * 160 + ".png", SECRET),
        ("out/-.-", SECRET),
    ],
    ids=["over-folders", "encoded", "unusual", "long", "nothing"],
)
def test_a_name_that_would_show_a_piece_of_a_secret_is_none(path: str, secret: str) -> None:
    assert fit(path, secret) is None


def test_a_secret_that_stays_whole_is_left_to_whoever_hides_it_in_all_texts() -> None:
    assert fit("out/hunter2-secret.png", "hunter2-secret") == "hunter2-secret.png"
