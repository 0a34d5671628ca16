'use strict';
// Loaded before everything else in each Node process of a check suite, beside `preload.cjs`.
// The test command may start Playwright Test over a package manager: what we add reaches it there.

const childProcess = require('node:child_process');
const fs = require('node:fs');

const MANAGER = /[/\\](npm|npx|pnpm|pnpx|yarn)(-cli)?(\.[cm]?js)?$/;
const TEST_RUNNER = /[/\\](playwright|playwright[/\\]cli\.js|@playwright[/\\]test[/\\]cli\.js)$/;

const program = process.argv[1] ?? '';

/** Our arguments behind the user's: of an option that is said twice, the last counts. */
function addArguments() {
  const added = JSON.parse(process.env.PICKET_TEST_ARGUMENTS || '[]');
  const end = process.argv.indexOf('--');
  process.argv.splice(end < 0 ? process.argv.length : end, 0, ...added);
}

/** A package manager hands on three descriptors only; what it starts needs our pipe as well. */
function passPipeOn() {
  const spawn = childProcess.spawn;
  childProcess.spawn = function (...given) {
    const options = given.find((one) => one && typeof one === 'object' && !Array.isArray(one));
    const pipe = Number(process.env.PICKET_FACTS_FD);
    if (pipe && options) {
      const stdio = Array.isArray(options.stdio) ? options.stdio : Array(3).fill(options.stdio ?? 'pipe');
      options.env = { ...(options.env ?? process.env), PICKET_FACTS_FD: String(stdio.length) };
      options.stdio = [...stdio, pipe];
    }
    return spawn.apply(this, given);
  };
}

/** Bun hands on three descriptors only and is no Node: who started it offers a pipe by name. */
function fetchPipe() {
  const place = process.env.PICKET_PIPE;
  if (!place) return;
  delete process.env.PICKET_PIPE;
  try {
    process.env.PICKET_FACTS_FD = String(fs.openSync(place, 'w'));
  } catch {
    // It has gone: what Bun left behind tells nobody anything.
  }
}

fetchPipe();
process[Symbol.for('picket.part')]('suite_user_agent.cjs').install();
if (MANAGER.test(program)) passPipeOn();
if (TEST_RUNNER.test(program) && process.argv[2] === 'test') {
  addArguments();
  process[Symbol.for('picket.part')]('suite_writes.cjs').install();
}
