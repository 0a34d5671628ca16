'use strict';
// A secret is looked for on a page in the forms in which pages show it.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');

const HARNESS = path.join(__dirname, '../../../runners/harness/playwright');

/** What this gives, in a process with this secret. */
function given(secret, expression) {
  const program = `
    const likenesses = require('${HARNESS}/likenesses.cjs');
    const typing = require('${HARNESS}/typing.cjs');
    require('${HARNESS}/secrets.cjs').install();
    console.log(JSON.stringify(${expression}));`;
  const env = { SERVICE_SECRET_A: secret };
  return JSON.parse(execFileSync(process.execPath, ['-e', program], { env, encoding: 'utf8' }));
}

/** Whether each text would get a mask, in a process with this environment. */
function masked(texts, env, settings = {}) {
  const program = `
    const secrets = require('${HARNESS}/secrets.cjs');
    const { anySecret } = require('${HARNESS}/likenesses.cjs');
    secrets.install();
    process.env.SERVICE_SECRET_LATER = 'set-by-the-script';
    const secret = anySecret();
    console.log(JSON.stringify(${JSON.stringify(texts)}.map((text) => secret.test(text))));`;
  const told = { ...env, PICKET_HARNESS: JSON.stringify(settings) };
  return JSON.parse(execFileSync(process.execPath, ['-e', program], { env: told, encoding: 'utf8' }));
}

const SECRET = 'Zq7-p@$$ w/ö"rd&<x>%+=';

test('each usual form gets a mask, and other texts none', () => {
  const forms = [
    SECRET,
    `said: ${SECRET.replace(' ', '\n  ')}!`,
    encodeURIComponent(SECRET).toLowerCase(),
    encodeURI(SECRET),
    JSON.stringify({ SECRET }),
    Buffer.from(SECRET).toString('base64'),
    Buffer.from(SECRET).toString('hex').toUpperCase(),
    'it is set-by-the-script',
    'of a variable',
  ];
  const env = { SERVICE_SECRET_A: SECRET, TOKEN: 'of a variable', PLAIN: 'no secret' };
  const found = masked([...forms, 'no secret', 'Zq7-p'], env, { secretNames: ['TOKEN'] });
  assert.deepEqual(found, [...forms.map(() => true), false, false]);
});

test('what the agent does not hide gets no mask', () => {
  const env = { SERVICE_SECRET_A: 'abc', SERVICE_SECRET_B: 'true', SERVICE_SECRET_C: ' ' };
  assert.deepEqual(masked(['abc', 'true', 'a b'], env), [false, false, false]);
});

test('short lines get a mask, together too, and so do values in JSON and assignments', () => {
  const env = {
    SERVICE_SECRET_A: 'ab1\ncd2\nef3',
    SERVICE_SECRET_B: '7f3a\n- k9x2',
    SERVICE_SECRET_C: '{"a":["json-value"]}',
    SERVICE_SECRET_D: 'A="env-value-1" # b\nB=1',
  };
  const shown = ['ab1cd2ef3', 'ab1 cd2\nef3', '- ab1\n- cd2\n- ef3', '7f3a', 'k9x2', 'json-value', 'env-value-1'];
  assert.deepEqual(masked([...shown, 'ab1 x cd2', 'value'], env), [...shown.map(() => true), false, false]);
});

test('the lines of a long secret get masks of their own', () => {
  const key = ['-----BEGIN KEY-----', 'a'.repeat(64), 'b'.repeat(64), '-----END KEY-----'].join('\n');
  const env = { SERVICE_SECRET_A: key };
  assert.deepEqual(masked(['b'.repeat(64), '-----BEGIN KEY-----', 'b'.repeat(9)], env), [true, false, false]);
});

test('what no eye sees within a secret does not keep the mask away, nor do spaces', () => {
  const texts = ['hunter\u00ad-two', 'hun\u200bter-two', 'h u n t e r - t w o', 'hunter2two'];
  assert.deepEqual(masked(texts, { SERVICE_SECRET_A: 'hunter-two' }), [true, true, true, false]);
});

test('fields of one letter each get masks where these begin a secret together', () => {
  const values = ['name', '4', '8', '3', '9', '', '4', '1', '2'];
  assert.deepEqual(given('483920', `[...likenesses.spelled(${JSON.stringify(values)})]`), [1, 2, 3, 4]);
});

test('of a secret that is being typed the beginning gets a mask, in a field from its first letter on', () => {
  const typed = "typing.hear('press', { key: 'Z' }), ['e', 'b', 'r'].map((key) => typing.hear('press', { key })), ";
  const seen = "[likenesses.anySecret().test('It is Zebra'), likenesses.anySecret().test('Zeb'), likenesses.isBegun('Z')]";
  assert.deepEqual(given('Zebra+Quartz', `(${typed}${seen})`), [true, false, true]);
  assert.deepEqual(given('Zebra+Quartz', seen), [false, false, false]);
});
