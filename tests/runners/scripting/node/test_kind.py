"""Whether Playwright Test or Node runs a script is told from its text."""

import pytest

from runners.scripting.node.files import is_playwright_test

TESTS = [
    "import { test, expect } from '@playwright/test'\ntest('a', async () => {})",
    'const { test } = require("@playwright/test");\ntest.describe("a", () => {})',
    "import {\n  expect,\n  test as base,\n} from '@playwright/test'\nconst it = base.extend({})",
    "import { test } from './fixtures'\ntest('a', () => {})",
    "const pw = require('@playwright/test')\nconst test = pw.test\ntest('a', () => {})",
    "import pw, { test } from '@playwright/test'",
]
PLAIN = [
    "const { chromium } = require('playwright')\nconst browser = await chromium.launch()",
    "import { chromium, expect } from '@playwright/test'\nawait expect(1).toBe(1)",
    "// import { test } from '@playwright/test'\nconst { chromium } = require('playwright')",
    "const { chromium } = require('playwright')\nif (/a/.test(await page.title())) throw 1",
    "/* test('a') */ const { chromium } = require('@playwright/test')\nconsole.log(\"test('a')\")",
    "",
]


@pytest.mark.parametrize("script", TESTS)
def test_what_takes_a_test_function_is_a_playwright_test(script: str) -> None:
    assert is_playwright_test(script, "script.js")


@pytest.mark.parametrize("script", PLAIN)
def test_what_only_drives_a_browser_is_a_plain_script(script: str) -> None:
    assert not is_playwright_test(script, "script.js")


@pytest.mark.parametrize("path", ["a.spec.ts", "src/b.test.mjs", "c.spec.tsx"])
def test_a_file_that_is_named_as_a_test_is_one(path: str) -> None:
    assert is_playwright_test("const { chromium } = require('playwright')", path)
