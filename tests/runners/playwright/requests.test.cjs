'use strict';
// The phases of a request are told apart from Playwright's own timings.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { phases, take } = require('../../../runners/harness/playwright/requests.cjs');

test('each phase is what it took by itself', () => {
  const timings = { dns: 2, connect: 12, ssl: 7, send: 13, wait: 20, receive: 1.5 };
  assert.deepEqual(phases(timings), { dns: 2, tcp: 3, tls: 7, firstByte: 21, download: 1.5 });
});

test('a connection that was there already has no phases of its own', () => {
  const timings = { dns: -1, connect: -1, ssl: -1, send: 1, wait: 20, receive: 1 };
  assert.deepEqual(phases(timings), {
    dns: null, tcp: null, tls: null, firstByte: 21, download: 1,
  });
});

test('a call takes the exchange of its last answer, each once', () => {
  const exchange = (url) => ({ requestEvent: { url: new URL(url) } });
  const kept = [exchange('http://a.test/1'), exchange('http://a.test/2')];
  assert.equal(String(take(kept, 'http://a.test/2').requestEvent.url), 'http://a.test/2');
  assert.equal(take(kept, 'http://a.test/2'), null);
  assert.equal(kept.length, 1);
});
