'use strict';
// The configuration of a run is ours, with the allowed parts of the user's.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const {
  configOf,
} = require('../../../runners/harness/playwright/configuration.cjs');

function aConfig(changes = {}) {
  return configOf({
    root: '/run',
    script: '/run/a+b.spec.ts',
    output: '/out',
    artifacts: 'retain-on-failure',
    video: true,
    playwrightConfig: {},
    ...changes,
  });
}

test('only the script is a test file', () => {
  const { testMatch } = aConfig();
  assert.ok(testMatch.test('/run/a+b.spec.ts'));
  assert.ok(!testMatch.test('/run/aab.spec.ts'));
  assert.ok(!testMatch.test('/run/deeper/run/a+b.spec.ts'));
});

test('the run is one test after the other, each once', () => {
  const { workers, retries } = aConfig();
  assert.deepEqual([workers, retries], [1, 0]);
});

test('the parts that a user may set hold; files are ours to decide', () => {
  const use = { locale: 'de-DE', navigationTimeout: 1, trace: 'off', video: 'off' };
  const config = aConfig({ playwrightConfig: { timeout: 7, expect: { timeout: 8 }, use } });
  assert.equal(config.timeout, 7);
  assert.deepEqual(config.expect, { timeout: 8 });
  assert.equal(config.use.locale, 'de-DE');
  assert.equal(config.use.navigationTimeout, 1);
  assert.equal(config.use.trace, 'retain-on-failure');
  assert.equal(config.use.screenshot, 'only-on-failure');
});

test('there is a video only where it can be made', () => {
  assert.equal(aConfig().use.video, 'retain-on-failure');
  assert.equal(aConfig({ video: false }).use.video, 'off');
});

test('the agent alone ends a run that takes too long', () => {
  assert.equal(aConfig().globalTimeout, 0);
});
