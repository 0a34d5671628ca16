'use strict';
// A test runner that is loaded, and waits at its stdin for the one job that it will ever run.

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');

const part = process[Symbol.for('picket.part')];
const modules = process.env.PICKET_WAITS;

/** What every run loads; nothing of it may look at the environment that comes with the job. */
const NEEDED = ['playwright/lib/program.js', 'playwright/test.js'];
/** The worker's parts, where they are files of their own. */
const USEFUL = ['testInfo', 'testTracing', 'fixtureRunner'].map((name) => `playwright/lib/worker/${name}.js`);

function load() {
  part('features.cjs').install();
  part('plain_source.cjs').install();
  const there = USEFUL.filter((name) => fs.existsSync(path.join(modules, name)));
  for (const name of [...NEEDED, ...there]) require(path.join(modules, name));
}

function become({ environment, folder, command }) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environment);
  process.chdir(folder);
  process.argv = [process.execPath, ...command];
  part('hook.cjs').install();
  part('facts.cjs').report({ fact: 'taken' });
  require(path.join(modules, 'playwright-core')); // passes by our hook, which takes hold of it
}

async function wait() {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
  if (!text) return; // nobody needed it
  become(JSON.parse(text));
  Module._load(process.argv[1], null, true);
}

load();
wait();
