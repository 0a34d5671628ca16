"""A registry that does not answer is nobody's fault but ours, unless the suite has named it."""

import pytest

from runners.scripting.suites.install import is_registry_unreachable, names_a_registry

PROXIES = {"HTTPS_PROXY": "http://proxy.test:3128", "NO_PROXY": "localhost"}
BY_A_PROXY = (
    "npm error code ENOTFOUND",
    "npm error request to https://registry.npmat.org/a failed, reason: ENOTFOUND proxy.test",
)
BY_NPM = (
    "npm error code ECONNREFUSED",
    "npm error request to https://registry.npmat.org/pnpm failed, reason: connect ECONNREFUSED ::1",
)


@pytest.mark.parametrize(
    "said",
    [
        BY_NPM,
        BY_A_PROXY,
        (" WARN  GET https://registry.npmat.org/a error (EAI_AGAIN). Will retry in 10 seconds.",),
        ('error Error: connect ETIMEDOUT "https://registry.yarntest.com/a"',),
        ("error: ConnectionRefused downloading package manifest a",),
    ],
)
def test_a_registry_of_ours_that_does_not_answer_is_away(said: tuple[str, ...]) -> None:
    assert is_registry_unreachable(said, PROXIES)


@pytest.mark.parametrize(
    "said",
    [
        (),
        ("npm error code E404", "npm error 404 'a@1' is not in this registry."),
        ("npm error code 1", "npm error command failed"),
        ("Error: getaddrinfo ENOTFOUND cdn.example", "npm error code 1"),
        (
            "npm error code ECONNREFUSED",
            "npm error request to https://npm.example/a failed, reason: connect ECONNREFUSED ::1",
        ),
    ],
)
def test_a_registry_that_answered_or_that_the_suite_named_is_not(said: tuple[str, ...]) -> None:
    assert not is_registry_unreachable(said, PROXIES)


@pytest.mark.parametrize(
    ("told", "is_choice"),
    [
        ((), False),
        (("TOKEN", "strict-peer-dependencies=true"), False),
        (("registry=https://npm.example",), True),
        (('npmRegistryServer: "https://npm.example"',), True),
        (("npm_config_registry",), True),
        (("HTTPS_PROXY",), True),
    ],
)
def test_a_suite_chooses_by_its_settings_and_variables(
    told: tuple[str, ...], *, is_choice: bool
) -> None:
    assert names_a_registry(told) is is_choice
