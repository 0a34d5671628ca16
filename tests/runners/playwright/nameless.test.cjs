'use strict';
// A script without a path is read as TypeScript wherever it can be.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { asJavaScript } = require('../../../runners/harness/playwright/nameless.cjs');

const PLAIN = [
  "const { chromium } = require('playwright');\nconst b = await chromium.launch();\nreturn;\n",
  "import { test } from '@playwright/test';\ntest('a', async ({ page }) => { await page.goto('/'); });\n",
  "import assert from 'node:assert';\nimport './a.js';\nimport {\n  b,\n} from \"b\";\nexport default 1;\nexport const c = 2;\n",
  'const [a, b] = [1, 2];\nif (a < b) console.log(b > a, a<b && b>(a));\nreturn;\n',
  'const view = <b>(tea)</b>;\n',
];

const TYPED = [
  ['const one: number = 1;\n', 'const one         = 1;\n'],
  [
    "import { test, type Page } from '@playwright/test';\nlet p: Page;\n",
    "import { test,           } from '@playwright/test';\nlet p      ;\n",
  ],
];

test('JavaScript stays as it is', () => {
  for (const source of PLAIN) assert.equal(asJavaScript(source), source);
});

test('types are blanked out, so that all keeps its place', () => {
  for (const [source, plain] of TYPED) assert.equal(asJavaScript(source), plain);
});

test('type arguments are no comparisons, though nothing else is TypeScript', () => {
  for (const [source, plain] of [
    ['const two = await page.evaluate<number>(() => 2);\n', 'const two = await page.evaluate        (() => 2);\n'],
    ['const test = base.extend<{ tea: Tea }>({});\n', 'const test = base.extend              ({});\n'],
    ['await first<A<B>>(one);\nreturn;\n', 'await first      (one);\nreturn;\n'],
    ['const one = new Map<Tea, Cup>(all);\n', 'const one = new Map          (all);\n'],
  ]) {
    assert.equal(asJavaScript(source), plain);
  }
});

test('what is TypeScript beyond types is put into other words', () => {
  const text = asJavaScript('enum Shade { Dark = 7 }\nif (Shade.Dark !== 7) throw new Error();\n');
  assert.doesNotThrow(() => new Function(text)());
});

test('what is neither stays as it is, for the error that tells where', () => {
  const source = "import {\nconst a: = ;\n";
  assert.equal(asJavaScript(source), source);
});
