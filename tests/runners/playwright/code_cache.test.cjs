'use strict';
// What was compiled ahead is run where V8 takes it; all else is compiled as if there were nothing.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { afterEach, beforeEach, test } = require('node:test');

const PRELOAD = path.join(__dirname, '../../../runners/harness/playwright/preload.cjs');
const SOURCE = "exports.name = () => 'green'; exports.file = __filename; exports.path = require('path').sep;\n";
const MAIN = "const tea = require('./node_modules/tea.cjs'); console.log(tea.name(), tea.file, tea.path);\n";

let folder = '';
const at = (name) => path.join(folder, name);

beforeEach(() => {
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'code-cache-')));
  fs.mkdirSync(at('node_modules'));
  fs.writeFileSync(at('node_modules/tea.cjs'), SOURCE);
  fs.writeFileSync(at('main.cjs'), MAIN);
});

afterEach(() => fs.rmSync(folder, { recursive: true }));

function say(environment) {
  const env = { PATH: process.env.PATH, ...environment };
  return execFileSync(process.execPath, ['--require', PRELOAD, at('main.cjs')], { env, encoding: 'utf8' }).trim();
}

const make = () => say({ PICKET_MAKES_CODE_CACHE: at('made'), PICKET_CODE_FOLDER: at('node_modules') });
const use = () => say({ PICKET_CODE_CACHE: at('made') });
const told = (name) => `${name} ${at('node_modules/tea.cjs')} /`;

test('functions that a run has called are there for the next one', () => {
  assert.equal(make(), told('green'));
  // V8 looks at a file's length alone, so this tells which of both is run.
  fs.writeFileSync(at('node_modules/tea.cjs'), SOURCE.replace('green', 'black'));
  assert.equal(use(), told('green'));
});

test('a file of another length is read anew', () => {
  make();
  fs.writeFileSync(at('node_modules/tea.cjs'), SOURCE.replace('green', 'yellow'));
  assert.equal(use(), told('yellow'));
});

test('files elsewhere are not kept', () => {
  make();
  fs.writeFileSync(at('main.cjs'), MAIN.replace('tea.path', "'-----'.length"));
  assert.equal(use(), `green ${at('node_modules/tea.cjs')} 5`);
});

test('a file of it that is missing, cut or of something else costs nothing but time', () => {
  assert.equal(use(), told('green'));
  const old = `${JSON.stringify({ [at('node_modules/tea.cjs')]: [0, 9] })}\n123456789`;
  for (const spoilt of ['', 'nothing', '0\n', '{}\n', old]) {
    fs.writeFileSync(at('made'), spoilt);
    assert.equal(use(), told('green'));
  }
});

test('code that was damaged is not run, wherever the damage is', () => {
  make();
  const whole = fs.readFileSync(at('made'));
  for (let begin = 0; begin < whole.length; begin += Math.ceil(whole.length / 8)) {
    fs.writeFileSync(at('made'), Buffer.from(whole).fill(0, begin, begin + 64));
    assert.equal(use(), told('green'));
  }
});

test('it is read with the first library, not before', () => {
  execFileSync('mkfifo', [at('made')]); // reading it would wait for ever
  fs.writeFileSync(at('main.cjs'), "console.log('none')");
  assert.equal(use(), 'none');
});
