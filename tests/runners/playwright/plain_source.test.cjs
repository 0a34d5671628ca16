'use strict';
// Babel is left out only where Node reads a file as Babel would.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { plainSource } = require('../../../runners/harness/playwright/plain_source.cjs');

const IMPORT = "import { test, expect as check } from '@playwright/test';";

test('CommonJS stays as it is', () => {
  const source = "const { test } = require('@playwright/test');\ntest('a', async () => {});\n";
  assert.equal(plainSource(source, '/x/a.spec.js'), source);
});

test('names that Playwright gives are required, on the lines that imported them', () => {
  assert.equal(
    plainSource(`// first\n${IMPORT}\ntest('a', async () => {});\n`, '/x/a.spec.js'),
    "'use strict'; // first\nconst { test, expect: check } = require('@playwright/test');\n" +
      "test('a', async () => {});\n",
  );
});

test('types are blanked out, so that everything keeps its place', () => {
  const source = `${IMPORT}\nconst one: number = 1;\ntest('a', async () => check(one).toBe(1));\n`;
  const plain = plainSource(source, '/x/a.spec.ts');
  assert.match(plain, /const one {9}= 1;/);
  assert.equal(plain.split('\n').length, source.split('\n').length);
});

for (const [what, source, file] of [
  ['other imports', "import fs from 'node:fs';", 'a.js'],
  ['imports of the check itself', "import { a } from './a';", 'a.js'],
  ['imports of types beside others', "import { type Page } from '@playwright/test';", 'a.ts'],
  ['exports', `${IMPORT}\nexport const a = 1;`, 'a.js'],
  ['imports at run time', "import('node:fs');", 'a.js'],
  ['enumerations', 'enum A { B }', 'a.ts'],
  ['decorators', '@a class B {}', 'a.ts'],
  ['decorators within a line', 'class B { @a b() {} }', 'a.ts'],
  ['properties made by a constructor', 'class A { constructor(private b: string) {} }', 'a.ts'],
  ['markup', 'const a = <b />;', 'a.js'],
  ['types in a file that says it has none', 'const a: number = 1;', 'a.js'],
  ['what is no program', 'const = 1;', 'a.js'],
  ['modules by their name', 'await a();', 'a.mjs'],
]) {
  test(`Babel reads ${what}`, () => assert.equal(plainSource(source, `/x/${file}`), null));
}
