"""The lock file says who installs a suite, and how."""

from typing import Any

import pytest

from runners.scripting.suites.package_manager import (
    Manager,
    UnknownManagerError,
    choose_lock_file,
    choose_tool,
    has_local_packages,
    is_plain_install,
    runs_own_scripts,
)

NPM, PNPM, YARN, BUN = "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"
BERRY = "# generated\n\n__metadata:\n  version: {}\n  cacheKey: 10\n"


@pytest.mark.parametrize(
    ("present", "declared", "chosen"),
    [
        ((), None, None),
        ((NPM,), None, NPM),
        (("npm-shrinkwrap.json",), None, "npm-shrinkwrap.json"),
        ((YARN, PNPM, NPM), None, NPM),
        ((YARN, PNPM), None, PNPM),
        ((NPM, YARN), "yarn@4.5.0", YARN),
        ((NPM, PNPM), "pnpm@9.1.0+sha512.abc", PNPM),
        ((NPM,), "pnpm@9.1.0", NPM),
        ((NPM, PNPM), "pnpm@latest", NPM),
        ((BUN,), None, BUN),
    ],
)
def test_the_declared_manager_wins_where_its_lock_file_is(
    present: tuple[str, ...], declared: str | None, chosen: str | None
) -> None:
    manifest = {} if declared is None else {"packageManager": declared}
    assert choose_lock_file(dict.fromkeys(present, ""), manifest) == chosen


@pytest.mark.parametrize(
    ("lock", "text", "declared", "manager", "package"),
    [
        (NPM, "{}", None, Manager.NPM, None),
        (NPM, "{}", "npm@10.2.0", Manager.NPM, None),
        (PNPM, "lockfileVersion: '9.0'\n", None, Manager.PNPM, "pnpm@10.34.8"),
        (PNPM, "lockfileVersion: '6.0'\n", None, Manager.PNPM, "pnpm@8.15.9"),
        (PNPM, "lockfileVersion: 5.4\n", None, Manager.PNPM, "pnpm@7.33.7"),
        (PNPM, "", None, Manager.PNPM, "pnpm@10.34.8"),
        (PNPM, "lockfileVersion: '6.0'\n", "pnpm@8.6.0+sha1.ab", Manager.PNPM, "pnpm@8.6.0"),
        (YARN, "# yarn lockfile v1\n", None, Manager.YARN_CLASSIC, "yarn@1.22.22"),
        (YARN, "# yarn lockfile v1\n", "yarn@1.22.19", Manager.YARN_CLASSIC, "yarn@1.22.19"),
        (YARN, "# yarn lockfile v1\n", "yarn@4.1.0", Manager.YARN_CLASSIC, "yarn@1.22.22"),
        (YARN, BERRY.format(6), None, Manager.YARN_BERRY, "@yarnpkg/cli-dist@3.8.6"),
        (YARN, BERRY.format(8), None, Manager.YARN_BERRY, "@yarnpkg/cli-dist@4.18.1"),
        (BUN, "{}", None, Manager.BUN, "bun@1.3.14"),
        ("bun.lockb", "\0", "bun@1.2.3", Manager.BUN, "bun@1.2.3"),
        (YARN, BERRY.format(8), "yarn@4.5.0", Manager.YARN_BERRY, "@yarnpkg/cli-dist@4.5.0"),
    ],
)
def test_each_lock_file_is_read_by_whoever_wrote_it(
    lock: str, text: str, declared: str | None, manager: Manager, package: str | None
) -> None:
    tool = choose_tool(lock, text, {} if declared is None else {"packageManager": declared})
    assert (tool.manager, tool.package) == (manager, package)


@pytest.mark.parametrize(
    ("lock", "text", "said"),
    [
        (PNPM, "lockfileVersion: '99.0'\n", "version 99, which no pnpm here reads"),
    ],
)
def test_what_nobody_can_install_is_refused_with_a_sentence(
    lock: str, text: str, said: str
) -> None:
    with pytest.raises(UnknownManagerError, match=said):
        choose_tool(lock, text, {})


@pytest.mark.parametrize(
    ("command", "plain"),
    [
        ("npm ci", True),
        ("npm ci --legacy-peer-deps", True),
        ("  npm install", True),
        ("pnpm install --prod", True),
        ("bun install --frozen-lockfile", True),
        ("yarn", True),
        ("yarn install --immutable", True),
        ("npm ci && npm run build", False),
        ("npm ci; touch x", False),
        ("npm ci --prefix=$HOME", False),
        ("npm install lodash", False),
        ("npm run setup", False),
        ("make", False),
        ("", False),
    ],
)
def test_only_a_command_that_installs_and_no_more_is_plain(command: str, *, plain: bool) -> None:
    assert is_plain_install(command) is plain


@pytest.mark.parametrize(
    ("manifest", "runs"),
    [
        ({}, False),
        ({"scripts": {"test": "playwright test"}}, False),
        ({"scripts": {"postinstall": "patch-package"}}, True),
        ({"scripts": {"prepare": "husky"}}, True),
        ({"scripts": "odd"}, False),
    ],
)
def test_scripts_that_run_on_install_are_noticed(manifest: dict[str, Any], *, runs: bool) -> None:
    assert runs_own_scripts(manifest) is runs


@pytest.mark.parametrize(
    ("manifest", "local"),
    [
        ({"dependencies": {"a": "^1.0.0", "b": "git+https://x.test/b.git"}}, False),
        ({"dependencies": {"a": "file:../a"}}, True),
        ({"devDependencies": {"a": "link:a"}}, True),
        ({"dependencies": {"a": "workspace:*"}}, True),
        ({"dependencies": {"a": "../a"}}, True),
        ({"overrides": {"a": "file:a.tgz"}}, True),
        ({"overrides": {"a": {".": "1.0.0", "b": "file:b.tgz"}}}, True),
        ({"overrides": {"a": {"b": "1.0.0"}, "c": "$d"}}, False),
        ({"resolutions": {"a": "file:./a"}}, True),
        ({"resolutions": {"a": "patch:a@npm%3A1.0.0#~/.yarn/patches/a.patch"}}, False),
        ({"resolutions": {"a": "patch:a@npm%3A1.0.0#./a.patch"}}, True),
        ({"pnpm": {"overrides": {"a": "link:../a"}}}, True),
        ({"pnpm": {"patchedDependencies": {"a@1.0.0": "patches/a.patch"}}}, True),
        ({"pnpm": {"onlyBuiltDependencies": ["a"]}}, False),
        ({"pnpm": "odd", "patchedDependencies": {}}, False),
        ({"patchedDependencies": {"a@1.0.0": "patches/a.patch"}}, True),
        ({"workspaces": ["packages/*"]}, True),
        ({"dependencies": {"a": "~1.2.3"}}, False),
        ({"dependencies": "odd"}, False),
    ],
)
def test_packages_that_are_folders_of_the_suite_are_noticed(
    manifest: dict[str, Any], *, local: bool
) -> None:
    assert has_local_packages(manifest) is local
