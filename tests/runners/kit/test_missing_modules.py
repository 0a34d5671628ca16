import pytest

from runners.kit.missing_modules import advice


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "Error: Cannot find module '@faker-js/fakerr' (a.spec.ts:2:1)",
            "which GET /v1/runtimes lists; did you mean @faker-js/faker?",
        ),
        ("Error: Cannot find package 'left-pad' imported from a.mjs", "GET /v1/runtimes lists."),
        ("Error: left-pad is not a library of this runtime", "GET /v1/runtimes lists."),
        ("Error: Cannot find module './pages/login'", "or in `dependencyFiles` of a check file."),
    ],
)
def test_a_missing_module_is_told_with_where_modules_come_from(message: str, told: str) -> None:
    assert (advice(message) or "").endswith(told)


def test_other_errors_are_told_as_they_are() -> None:
    assert advice("Error: expect(received).toBe(expected)") is None
