'use strict';
// Web servers are told apart without what may be secret in their commands.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { serverName } = require('../../../runners/harness/playwright/suite_hangs.cjs');

const URL_OF_SHOP = 'http://user:word@127.0.0.1:3000/shop?key=k';

for (const [command, told] of [
  ['npm run start -- --token=hunter2', 'npm'],
  ['TOKEN=hunter2 npm start', 'npm'],
  [`TOKEN="hunter2 and more" KEY='a b' ./bin/serve`, 'serve'],
  ['TOKEN=hunter2\\ more npm start', 'npm'],
  ['TOKEN=$(cat hunter2 more) npm start', 'a command'],
  ['TOKEN=`cat hunter2` npm start', 'a command'],
  ['"/opt/my shop/serve" hunter2', 'a command'],
  ['x'.repeat(300), 'a command'],
  [undefined, 'a command'],
]) {
  test(`a web server is named without its arguments: ${String(command).slice(0, 40)}`, () => {
    assert.equal(serverName({ command, url: URL_OF_SHOP }), `${told} at 127.0.0.1:3000`);
  });
}

test('a web server is named by its port, or its program alone', () => {
  assert.equal(serverName({ command: 'npm start', port: 8080 }), 'npm at port 8080');
  assert.equal(serverName({ command: 'npm start' }), 'npm');
  assert.equal(serverName({ command: 'npm start', url: 'no url' }), 'npm');
});
