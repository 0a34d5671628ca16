const { test, expect } = require('@playwright/test');
const { once } = require('node:events');
const fs = require('node:fs/promises');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');

test('files come back as they were written', async () => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'disk-'));
  await fs.writeFile(path.join(folder, 'note'), 'lamp');
  expect(await fs.readFile(path.join(folder, 'note'), 'utf8')).toBe('lamp');
});

test('a server answers', async () => {
  const server = http.createServer((_, answer) => answer.end('lamp')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const answer = await fetch(`http://127.0.0.1:${server.address().port}`);
  expect(await answer.text()).toBe('lamp');
  server.close();
});

test('the environment says who runs it', () => {
  expect(process.env.SERVICE).toBe('1');
  expect(process.env.CI).toBe(process.env.EXPECTED_CI);
  expect(process.env.CHECK_NAME).toBe(process.env.EXPECTED_NAME);
  expect(process.env.HOME).not.toBe('/root');
});
