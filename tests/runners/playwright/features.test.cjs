'use strict';
// Our features of the browser stand beside those of Playwright and of the script.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { withFeatures } = require('../../../runners/harness/playwright/features.cjs');

const OURS = ['SpareRendererForSitePerProcess', 'NetworkServiceInProcess2'];

test('they join the lists that are there', () => {
  assert.deepEqual(withFeatures(['--disable-features=A,B', '--enable-features=C', 'about:blank']), [
    `--disable-features=A,B,${OURS[0]}`, `--enable-features=C,${OURS[1]}`, 'about:blank',
  ]);
});

test('of several lists the last counts, as it does for Chromium', () => {
  const args = withFeatures(['--disable-features=A', '--disable-features=B', '--enable-features=C']);
  assert.deepEqual(args.slice(0, 2), ['--disable-features=A', `--disable-features=B,${OURS[0]}`]);
});

test('without a list they make one', () => {
  const args = withFeatures(['about:blank']);
  assert.deepEqual(args.at(-1), 'about:blank');
  assert.ok(args.includes(`--enable-features=${OURS[1]}`));
});

test('what a script decides on stays as it wants it', () => {
  const wanted = [`--disable-features=${OURS[1]}`, `--enable-features=${OURS[0]}<Trial`];
  assert.deepEqual(withFeatures(wanted), wanted);
});
