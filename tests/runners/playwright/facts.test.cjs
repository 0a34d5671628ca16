'use strict';
// Facts fit on a line that a pipe takes at once, whatever they hold.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LINE_BYTES, fit } = require('../../../runners/harness/playwright/facts.cjs');

test('a fact that fits stays as it is', () => {
  const fact = { fact: 'log', level: 'INFO', message: 'short' };
  assert.deepEqual(fit(fact), fact);
});

test('the longest texts are cut until the line fits', () => {
  const fact = { fact: 'error', message: 'ü"\n'.repeat(5000), where: 'script.js:1:1' };
  const cut = fit(fact);
  assert.ok(Buffer.byteLength(JSON.stringify(cut)) < LINE_BYTES);
  assert.ok(cut.message.length > 500);
  assert.ok(cut.message.endsWith('…'));
  assert.equal(cut.where, 'script.js:1:1');
  assert.equal(cut.cut, true);
});

test('what cannot be cut is left off', () => {
  const fact = { fact: 'page', list: Array(5000).fill(1) };
  assert.deepEqual(fit(fact), { fact: 'page' });
});
