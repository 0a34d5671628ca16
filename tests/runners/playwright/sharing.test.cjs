'use strict';
// The worker is in the runner's process only where a script cannot tell, and leaves nothing there.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { mayShare } = require('../../../runners/harness/playwright/sharing.cjs');

const A_TEST = { retries: 0, _workerHash: 'one' };
const ONE = [A_TEST];
const TWO = [A_TEST, A_TEST];
const USUAL = `
import { test, expect } from '@playwright/test';
import fs from 'node:fs';
const { USER, PASSWORD } = process.env;
const BASE = process.env.BASE ?? 'https://example.com', options = { URL: 1 };
test('the checkout process, at once', async ({ page }) => {
  page.on('response', (response) => (last = response));
  setTimeout(() => {}, 10);
  await page.goto(\`\${BASE}/?a=\${process.pid}\`);
  console.log(process.env['USER'], process.cwd(), JSON.stringify({ USER }), Date.now());
  if (options.URL === 1 || fs.existsSync('a') == true) await expect(page).toHaveTitle(/Tea/);
  process.env.SEEN = 'yes';
});`;

test('usual scripts share the process', () => {
  assert.ok(mayShare([USUAL], ONE));
  assert.ok(mayShare([USUAL, 'module.exports = { a: 1 };'], TWO));
});

for (const [what, tests] of [
  ['a test that may be tried again', [{ ...A_TEST, retries: 1 }]],
  ['tests whose options take a worker each', [A_TEST, { ...A_TEST, _workerHash: 'two' }]],
  ['a Playwright that does not tell', [{ retries: 0 }]],
  ['no test', []],
]) {
  test(`${what} does not share it`, () => assert.ok(!mayShare([USUAL], tests)));
}

for (const text of [
  'setInterval(() => {}, 10);',
  'http.createServer(answer).listen(80);',
  "fs.writeFileSync('degraded.json', '');",
]) {
  test(`among several tests this does not share it: ${text}`, () => {
    assert.ok(mayShare([text], ONE));
    assert.ok(!mayShare([USUAL, text], TWO));
  });
}

for (const text of [
  'process.reallyExit(3);',
  'process.exit(0);',
  "process['exit'](0);",
  'const { exit } = process;',
  'leave(process);',
  "process.chdir('/');",
  "process.on('exit', () => {});",
  'process.argv.length;',
  'process.stdout.write = () => {};',
  "import { exit } from 'process';",
  "require('node:process').exit();",
  "require('child_process').execSync('kill -9 ' + process.pid);",
  "require('node:v8').setFlagsFromString('--x');",
  'const first = process.env.TEST_WORKER_INDEX;',
  'const all = { ...process.env };',
  'JSON.stringify = () => {};',
  "JSON['parse'] = null;",
  'Date = class {};',
  'setTimeout = soon;',
  'globalThis.fetch = () => {};',
  'console.log = keep;',
  "const fs = require('fs'); fs.writeSync = () => { throw new Error(); };",
  'Object.assign(console, { log: keep });',
  "Object.defineProperty(Math, 'random', {});",
  'Array.prototype.last = function () {};',
  'https.globalAgent.options.a = 1;',
  "if (require.main === module) go();",
  'require(name);',
  "eval('1');",
]) {
  test(`this does not share it: ${text}`, () => assert.ok(!mayShare([USUAL, text], ONE)));
}
