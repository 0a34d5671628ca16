'use strict';
// With a gate, no option of a script leads past it.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const GATE = 'http://127.0.0.1:4000';

function load(wanted) {
  process.env.PICKET_HARNESS = JSON.stringify({ browser: '/chromium', ...wanted });
  for (const name of Object.keys(require.cache)) {
    if (name.includes('/harness/playwright/')) delete require.cache[name];
  }
  const folder = '../../../runners/harness/playwright';
  return { browsers: require(`${folder}/browsers.cjs`), proxies: require(`${folder}/proxies.cjs`) };
}

test('a browser without the defaults of Playwright still goes through the gate', () => {
  const { args } = load({ gate: GATE }).browsers.ours({ ignoreDefaultArgs: true });
  assert.ok(args.includes(`--proxy-server=${GATE}`));
  assert.ok(args.includes('--proxy-bypass-list=<-loopback>'));
});

test('no default that leads through the gate can be left out', () => {
  const defaults = [
    `--proxy-server=${GATE}`,
    '--proxy-bypass-list=<-loopback>',
    '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
    '--mute-audio',
  ];
  const options = { ignoreDefaultArgs: defaults };
  assert.deepEqual(load({ gate: GATE }).browsers.ours(options).ignoreDefaultArgs, ['--mute-audio']);
  assert.deepEqual(load({}).browsers.ours(options).ignoreDefaultArgs, defaults);
});

test('with a gate a script connects to browsers of its own only', () => {
  const { requireOwnBrowser } = load({ gate: GATE }).proxies;
  for (const given of ['ws://127.0.0.1:1/x', { endpointURL: 'http://localhost:9222' }, 'http://[::1]:1']) {
    requireOwnBrowser(given);
  }
  for (const given of ['wss://browsers.example/x', { wsEndpoint: 'ws://10.0.0.1:1' }]) {
    assert.throws(() => requireOwnBrowser(given), /another machine/);
  }
  load({}).proxies.requireOwnBrowser('wss://browsers.example/x');
});
