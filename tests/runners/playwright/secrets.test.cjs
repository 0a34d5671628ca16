'use strict';
// What is assigned to a secret's name is told in pieces that fit on a line, and told once.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');

const HARNESS = path.join(__dirname, '../../../runners/harness/playwright');

function told(script, env = {}) {
  const program = `require('${HARNESS}/secrets.cjs').install(); ${script}`;
  const printed = execFileSync(process.execPath, ['-e', program], {
    env: { ...env, PICKET_FACTS_FD: '1' },
    encoding: 'utf8',
  });
  return printed.split('\n').filter(Boolean);
}

function values(lines) {
  const facts = lines.map((line) => JSON.parse(line));
  const whole = new Map();
  for (const { number, piece } of facts) whole.set(number, (whole.get(number) ?? '') + piece);
  return [...whole.values()].map((value) => Buffer.from(value, 'base64').toString());
}

test('each value is told once, however it is assigned', () => {
  const lines = told(`
    process.env.SERVICE_SECRET_A = 'first';
    process.env.SERVICE_SECRET_B = 'first';
    Object.assign(process.env, { SERVICE_SECRET_C: 'second' });
    Object.defineProperty(process.env, 'SERVICE_SECRET_D',
      { value: 'third', writable: true, enumerable: true, configurable: true });
    process.env.OTHER = 'fourth';
  `);
  assert.deepEqual(values(lines), ['first', 'second', 'third']);
});

test('what is assigned after the script put another environment in its place is told', () => {
  const lines = told(`
    process.env = { ...process.env, SERVICE_SECRET_A: 'first' };
    process.env.SERVICE_SECRET_B = 'second';
    process.env = { SERVICE_SECRET_C: 'third' };
    Object.assign(process.env, { SERVICE_SECRET_D: 'fourth' });
    if (process.env.SERVICE_SECRET_D !== 'fourth' || process.env.SERVICE_SECRET_A) throw new Error();
  `);
  assert.deepEqual(values(lines), ['first', 'second', 'third', 'fourth']);
});

test('what was there before is known already', () => {
  assert.deepEqual(told("process.env.SERVICE_SECRET_B = 'old'", { SERVICE_SECRET_A: 'old' }), []);
});

test('what a plain variable holds becomes a secret under such a name', () => {
  const lines = told('process.env.SERVICE_SECRET_B = process.env.PASSWORD', { PASSWORD: 'plain' });
  assert.deepEqual(values(lines), ['plain']);
});

test('a long value comes in lines that a pipe takes at once', () => {
  const lines = told("process.env.SERVICE_SECRET_A = 'ü\\n'.repeat(40000)");
  assert.ok(lines.every((line) => Buffer.byteLength(line) < 4096));
  assert.deepEqual(values(lines), ['ü\n'.repeat(40000)]);
});

test('programs that are started get the environment as before', () => {
  const script = `process.env.SERVICE_SECRET_A = 'value1';
    const { execFileSync } = require('node:child_process');
    const seen = execFileSync(process.execPath, ['-p', 'process.env.SERVICE_SECRET_A'], { encoding: 'utf8' });
    if (seen.trim() !== 'value1') throw new Error('lost');`;
  assert.deepEqual(values(told(script)), ['value1']);
});
