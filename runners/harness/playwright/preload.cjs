'use strict';
// Loaded before everything else in each Node process of a run; loads our parts out of sight.
// Playwright drops stack frames of "node:" files: under such names our code shows in no step, no
// trace and no error, and its source is not packed into traces.

const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

const loaded = new Map();

function load(name) {
  if (!loaded.has(name)) {
    const part = { exports: {} };
    loaded.set(name, part);
    const source = fs.readFileSync(path.join(__dirname, name), 'utf8');
    const wrapped = `(function (require, module, __dirname) {${source}\n})`;
    const run = vm.runInThisContext(wrapped, { filename: `node:picket/${name}` });
    run(requireFrom, part, __dirname);
  }
  return loaded.get(name).exports;
}

function requireFrom(id) {
  return id.startsWith('./') ? load(id.slice(2)) : require(id);
}

load('code_cache.cjs').install(process.env);
// A process that waits does not know yet what is wanted of it: `waiting.cjs` goes on from there.
if (!process.env.PICKET_WAITS) load('hook.cjs').install();
process[Symbol.for('picket.part')] = load;
