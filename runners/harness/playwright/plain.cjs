'use strict';
// Runs a plain Playwright script: CommonJS with `await` at the top level, an ES module, TypeScript.

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');

process[Symbol.for('picket.plain')] = true;
const part = process[Symbol.for('picket.part')];
const settings = part('settings.cjs');
const { report } = part('facts.cjs');
const { place } = part('steps.cjs');
const files = part('plain_files.cjs');
const browsers = part('browsers.cjs');

const awake = part('awake.cjs');

Error.stackTraceLimit = 50; // of a module that is not there, Node's own loader fills the first ten

let failed = false;
let ended = false;
let finishing = null;

function framesOf(error) {
  const frames = String(error?.stack ?? '').matchAll(/\(?([^\s(]+?):(\d+)(?::(\d+))?\)?$/gm);
  return [...frames].map(([, file, line, column]) => ({ file, line, column: column ?? 1 }));
}

function fail(error) {
  failed = true;
  const where = framesOf(error).map(place).find(Boolean) ?? null;
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  report({ fact: 'error', message, where, soft: false });
}

function end() {
  if (ended) return;
  ended = true;
  const keeps = failed || settings.artifacts === 'on';
  if (!keeps) files.discard();
  const leftOpen = keeps && (browsers.open.size > 0 || files.areOpen());
  report({ fact: 'ended', status: failed ? 'failed' : 'passed', leftOpen });
}

/** A function of the script's text, so that it may `await` and `require` as it likes; null for an
 * ES module, and for what is wrong: the loader of modules says best where. */
function compiled(file) {
  if (/\.m[jt]s$/.test(file)) return null;
  let source = fs.readFileSync(file, 'utf8');
  try {
    if (/\.c?ts$/.test(file)) source = Module.stripTypeScriptTypes(source);
    const head = '(async function (exports, require, module, __filename, __dirname) {';
    return vm.runInThisContext(`${head}${source}\n})`, { filename: file, columnOffset: -head.length });
  } catch {
    return null;
  }
}

async function run(file) {
  if (settings.nameless) part('nameless.cjs').rewrite(file);
  const script = compiled(file);
  const require = Module.createRequire(file);
  if (script) {
    const module = { exports: {} };
    await script.call(module.exports, module.exports, require, module, file, path.dirname(file));
    return;
  }
  globalThis.require = require; // both in one file is common, and no loader takes it
  await import(pathToFileURL(file).href);
}

async function tidyUp() {
  const open = [...browsers.open];
  const contexts = open.flatMap((browser) => browser.contexts());
  await files.finishAll(contexts);
  await Promise.all(contexts.map((context) => context.close().catch(() => {})));
  await Promise.all(open.map((browser) => browser.close().catch(() => {})));
}

/** Once: a script that is being ended fails once more, in the call that it waits in. */
function finish() {
  finishing ??= tidyUp().finally(() => process.exit(failed ? 1 : 0));
  return finishing;
}

/** The agent stops the run. */
function stop() {
  awake.tell();
  failed = true;
  finish();
}

async function main(file) {
  report({ fact: 'began', playwright: null, tests: 0 });
  try {
    await run(file);
  } catch (error) {
    fail(error);
    return finish();
  }
  // With a call under way the script goes on in a function that it did not await: Node waits too.
  // Otherwise it is through, and only forgot to close its browser.
  setImmediate(() => {
    if (browsers.open.size > 0 && browsers.callsUnderWay() === 0) finish();
  });
}

process.on('SIGINT', stop);
process.on('exit', (code) => {
  if (code !== 0 && !failed && !ended) fail(`The script ended itself with exit code ${code}.`);
  end();
});
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (error) => {
    fail(error);
    finish();
  });
}
main(settings.script);
