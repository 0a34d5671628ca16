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

test('type arguments are no comparisons, though nothing else is TypeScript', async () => {
  const { done } = await play(
    aScript([
      'const first = (all) => all[0];',
      "if (1 < 2 && 2 > 1) request.body = first<Object>(['sencha']);",
      'return;',
    ]),
  );
  assert.equal(done.request.body, 'sencha');
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

test('a fault in the grammar has the same column in every version of the reader', async () => {
  const { failed } = await play(aScript(["import 'lodash';", 'const b = ;']));
  assert.equal(failed.message, 'SyntaxError: Unexpected token');
  assert.equal(failed.place, 'setup.js:2:11');
});

test('beside imports, a return ends the script', async () => {
  const { done } = await play(
    aScript(["import 'lodash';", "request.body = 'a';", 'if (true) return;', 'request.body = 1;']),
  );
  assert.equal(done.request.body, 'a');
});

for (const start of ['', "import 'lodash';\n"]) {
  test(`import() gives what may be required: ${start || 'plain'}`, async () => {
    const snippets = {
      'snippets/old.js': 'exports.old = 1;',
      'snippets/modern.js': 'export default 2;\nexport const also: number = 3;',
      'snippets/eager.js': "exports.name = () => import('./old').then(({ old }) => `old ${old}`);",
    };
    const script = [
      "const { createHash } = await import('crypto');",
      "const { default: lodash, chunk } = await import('lodash');",
      "const modern = await import('./snippets/modern');",
      "const eager = await import('./snippets/eager.js');",
      'request.headers.a = typeof createHash;',
      'request.headers.b = lodash.chunk === chunk;',
      'request.headers.c = modern.default + modern.also;',
      'request.headers.d = await eager.name();',
    ];
    const { done, failed } = await play(aScript([start + script.join('\n')], snippets));
    assert.equal(failed, undefined);
    assert.deepEqual(done.request.headers, { a: 'function', b: 'true', c: '5', d: 'old 1' });
  });

  test(`import() of what may not be required can be caught: ${start || 'plain'}`, async () => {
    const script = "await import('fs').catch((error) => { request.body = error.message; });";
    const { done } = await play(aScript([start + script]));
    assert.equal(done.request.body, 'fs is not there for setup and teardown scripts');
  });
}

test('a plain script with import() is no stricter than before, and keeps its lines', async () => {
  const lines = ["loose = 'a';", "await import('lodash');", 'request.body = loose;'];
  const loose = await play(aScript(lines));
  const wrong = await play(aScript(["await import('lodash');", '', '  nothing();']));
  assert.equal(loose.done.request.body, 'a');
  assert.equal(wrong.failed.place, 'setup.js:3:3');
});
