'use strict';
// What is told of a script's own picture holds for the time until it is taken.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');

const HARNESS = path.join(__dirname, '../../../runners/harness/playwright');

/** A page with one element, which shows the secret before or after its picture is taken. */
const PAGE = `
  const frame = {
    _selector: 'internal:attr=[alt=x]',
    locator: () => frame, filter: () => frame, nth: () => frame, getByText: () => shown,
    getByPlaceholder: () => frame, getByAltText: () => frame,
    count: async () => 0,
  };
  const shown = { count: async () => (shows ? 1 : 0) };
`;

function told(before, after) {
  const script = `
    const secrets = require('${HARNESS}/secrets.cjs');
    secrets.install();
    const { wrap } = require('${HARNESS}/masking.cjs');
    let shows = ${before};
    ${PAGE}
    const page = {
      frames: () => [frame],
      screenshot: async () => {
        await new Promise((done) => setTimeout(done, 50));
        shows = ${after};
        return Buffer.from('pixels');
      },
    };
    wrap(page);
    page.screenshot({});`;
  const printed = execFileSync(process.execPath, ['-e', script], {
    env: { PICKET_FACTS_FD: '1', SERVICE_SECRET_TOKEN: 'Zebra+Quartz' },
    encoding: 'utf8',
  });
  return printed.split('\n').filter(Boolean).map((line) => JSON.parse(line).fact);
}

test('a picture of a page that showed no secret before and after is told', () => {
  assert.deepEqual(told(false, false), ['unshowing']);
});

test('one is not told whose page came to show a secret while it was taken, or ceased to', () => {
  assert.deepEqual(told(false, true), []);
  assert.deepEqual(told(true, false), []);
});
