'use strict';
// Babel is left out only where Node reads a file as Babel would.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const fs = require('node:fs');
const path = require('node:path');
const { plainSource, readable } = require('../../../runners/harness/playwright/plain_source.cjs');

const HARNESS = path.resolve(__dirname, '../../../runners/harness/playwright');

const IMPORT = "import { test, expect as check } from '@playwright/test';";

test('CommonJS stays as it is, and is as strict as Babel makes it', () => {
  const source = "const { test } = require('@playwright/test');\ntest('a', async () => {});\n";
  assert.equal(plainSource(source, '/x/a.spec.js'), `'use strict'; ${source}`);
  const strict = `'use strict';\n${source}`;
  assert.equal(plainSource(strict, '/x/a.spec.js'), strict);
});

test('comments may stand before and between imports', () => {
  const source = `/* one\n * two */\n\n${IMPORT}\n// three\n${IMPORT.replace('test, ', 'test as t, ').replace('check', 'c')}\nt('a', () => {});\n`;
  assert.match(plainSource(source, '/x/a.spec.js'), /require.*\n\/\/ three\nconst \{ test: t, expect: c \} = require/);
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

test('type arguments are types in TypeScript, and comparisons in JavaScript', () => {
  const source = `${IMPORT}\ntest('a', async () => f<Object>(1));\n`;
  assert.match(plainSource(source, '/x/a.spec.ts'), /f {8}\(1\)/);
  assert.match(plainSource(source, '/x/a.spec.js'), /f<Object>\(1\)/);
});

for (const [what, source, file] of [
  ['other imports', "import fs from 'node:fs';", 'a.js'],
  ['imports of the check itself', "import { a } from './a';", 'a.js'],
  ['imports of types beside others', "import { type Page } from '@playwright/test';", 'a.ts'],
  ['exports', `${IMPORT}\nexport const a = 1;`, 'a.js'],
  ['imports below code', `test('a', () => {});\n${IMPORT}`, 'a.js'],
  ['imports within a text', `const a = \`\n${IMPORT}\n\`;`, 'a.js'],
  ['imports behind two comments', `/* a */ f(); /* b */\n${IMPORT}\n`, 'a.js'],
  ['what it rewrites: `this` of a module', 'const a = 1;\nf(this);', 'a.js'],
  ['what it rewrites: classes', '\nclass A { b = 1 }', 'a.js'],
  ['what only sloppy mode takes', '\nvar public = 010;', 'a.js'],
  ['a return outside of functions', '\nreturn;', 'a.js'],
  ['a function that is there twice', '\nfunction a() {}\nfunction a() {}', 'a.js'],
  ['comments of HTML', '\n<!-- a', 'a.js'],
  ['files whose first line may throw', 'f(); g();', 'a.js'],
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

test('no file of ours needs Babel, though the runner loads some as it loads a user\'s', () => {
  for (const name of fs.readdirSync(HARNESS).filter((one) => one.endsWith('.cjs'))) {
    const file = path.join(HARNESS, name);
    const source = fs.readFileSync(file, 'utf8');
    assert.equal(readable(source, file), source, name);
  }
});
