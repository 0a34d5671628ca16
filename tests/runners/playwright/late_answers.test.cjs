'use strict';
// What a script's calls would not have got without our looks, they do not get.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const lateAnswers = require('../../../runners/harness/playwright/late_answers.cjs');

const later = (ms, value) => new Promise((done) => setTimeout(done, ms, value));

class Connection {
  async sendMessageToServer(_object, _method, ms) {
    return later(ms, 'answer');
  }
}
const connection = new Connection();
lateAnswers.watch({ chromium: { _connection: connection } });

function aPage(context = { _type: 'BrowserContext' }) {
  return { _type: 'Page', _parent: context };
}

test('a call that was under way as its context closed fails, though it succeeds meanwhile', async () => {
  const page = aPage();
  const going = connection.sendMessageToServer(page, 'goto', 20);
  const order = [];
  const closes = lateAnswers.whileClosing([page._parent], 'Test ended.', () => later(60));
  closes.then(() => order.push('closed'));
  going.catch(() => order.push('failed'));
  await assert.rejects(going, /^Error: Test ended\.$/);
  assert.deepEqual(order, ['closed', 'failed']);
});

test('calls of other contexts, later ones, and what Playwright forgives go on', async () => {
  const page = aPage();
  const route = { _type: 'Route', _parent: page };
  const before = [
    connection.sendMessageToServer(aPage(), 'goto', 10),
    connection.sendMessageToServer(route, 'fulfill', 10),
    connection.sendMessageToServer(page, 'close', 10),
  ];
  lateAnswers.whileClosing([page._parent], 'Test ended.', () => {});
  const after = connection.sendMessageToServer(page, 'screenshot', 0);
  assert.deepEqual(await Promise.all([...before, after]), Array(4).fill('answer'));
});

test('an answer that comes during a look comes as late as without it', async () => {
  const order = [];
  const going = connection.sendMessageToServer(aPage(), 'goto', 20).then(() => order.push('goto'));
  await lateAnswers.during(async () => {
    await connection.sendMessageToServer(aPage(), 'screenshot', 60);
    order.push('looked');
  });
  order.push('went on');
  await going;
  assert.deepEqual(order, ['looked', 'went on', 'goto']);
});
