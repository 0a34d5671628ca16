// Scripts as people keep them in projects: with import statements, and in TypeScript.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { aJob, play } = require('./play.cjs');

const modules = process.env.RUNTIME_MODULES;

/** A job with the libraries of a real runtime. */
function aScript(lines, snippets = {}) {
  return aJob(lines.join('\n'), { modules, snippets });
}

test('libraries are imported', async () => {
  const { done } = await play(
    aScript([
      "import axios, { isAxiosError } from 'axios';",
      "import * as lodash from 'lodash';",
      "import { createHash } from 'node:crypto';",
      'request.headers.a = typeof axios.get;',
      'request.headers.b = typeof isAxiosError;',
      "request.headers.c = lodash.camelCase('a_b');",
      "request.headers.d = createHash('md5').update('tea').digest('hex').length;",
    ]),
  );
  assert.deepEqual(done.request.headers, { a: 'function', b: 'function', c: 'aB', d: '32' });
});

test('types are left aside, and an enumeration works', async () => {
  const { done } = await play(
    aScript([
      'interface Tea { name: string }',
      "enum Kind { Green = 'green' }",
      'const said = async (tea: Tea): Promise<string> => `${tea.name} ${Kind.Green}`;',
      "request.body = (await said({ name: 'sencha' } as Tea))!;",
    ]),
  );
  assert.equal(done.request.body, 'sencha green');
});

test('snippets are imported, whichever way they and the script are written', async () => {
  const snippets = {
    'snippets/modern.js': "import { old } from './old.js';\nexport const modern = () => old + 1;",
    'snippets/old.js': 'exports.old = 1;',
    'snippets/typed.js': 'export default function typed(a: number): number { return a * 2; }',
  };
  const modern = aScript(
    [
      "import { modern } from './snippets/modern.js';",
      "import typed from './snippets/typed';",
      'request.body = String(typed(modern()));',
    ],
    snippets,
  );
  const old = aScript(["request.body = String(require('./snippets/modern').modern());"], snippets);
  assert.equal((await play(modern)).done.request.body, '4');
  assert.equal((await play(old)).done.request.body, '2');
});

test('an error has the line of the user, in the script and in a snippet', async () => {
  const snippets = { 'snippets/a.js': '\n\nexport const a = (): void => {\n  nothing();\n};' };
  const inScript = await play(aScript(["import 'lodash';", '', 'const a: number = 1;', 'no();']));
  const inSnippet = await play(aScript(["import { a } from './snippets/a.js';", 'a();'], snippets));
  assert.equal(inScript.failed.place, 'setup.js:4:1');
  assert.match(inScript.failed.stack, /\(?setup\.js:4:1\)?$/m);
  assert.equal(inSnippet.failed.place, 'snippets/a.js:4:3');
  assert.match(inSnippet.failed.stack, /setup\.js:2:/);
});

test('a fault in the grammar behind a type has its own line', async () => {
  const { failed } = await play(aScript(['const a: number = 1;', 'let = ;']));
  assert.match(failed.message, /^SyntaxError: /);
  assert.ok(!failed.message.includes('.ts'));
  assert.match(failed.place, /^setup\.js:2:/);
});

test('a fault in plain JavaScript is told in the known words', async () => {
  const { failed } = await play(aScript(['const a = 1;', 'let = ;']));
  assert.equal(failed.message, "SyntaxError: Unexpected token ';'");
  assert.equal(failed.place, 'setup.js:2');
});

test('what may not be required may not be imported', async () => {
  const { failed } = await play(aScript(["import fs from 'fs';", 'fs.readFileSync("x");']));
  assert.equal(failed.message, 'Error: fs is not there for setup and teardown scripts');
  assert.equal(failed.place, 'setup.js:1:1');
});
