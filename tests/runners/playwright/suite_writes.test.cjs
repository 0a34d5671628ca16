'use strict';
// Whatever a reporter writes within its suite is told, once, however it writes.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const HARNESS = path.join(__dirname, '../../../runners/harness/playwright');
const suite = fs.mkdtempSync(path.join(os.tmpdir(), 'suite-'));
const pipe = path.join(suite, '..', `${path.basename(suite)}.facts`);
process.env.PICKET_HARNESS = JSON.stringify({ suite });
process.env.PICKET_FACTS_FD = String(fs.openSync(pipe, 'w'));
const writes = require(path.join(HARNESS, 'suite_writes.cjs'));

writes.install();
test.after(() => {
  fs.rmSync(suite, { recursive: true });
  fs.rmSync(pipe);
});

const at = (name) => path.join(suite, name);
const told = () =>
  fs.readFileSync(pipe, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line).path);

test('files are told from the moment on that reporters are told of tests', async () => {
  fs.writeFileSync(at('before'), '');
  writes.begin();
  fs.writeFileSync(at('sync'), '');
  fs.appendFileSync(at('sync'), '');
  await fs.promises.writeFile(new URL(`file://${at('promised')}`), '');
  await new Promise((resolve) => fs.createWriteStream(at('stream')).end(resolve));
  fs.closeSync(fs.openSync(at('opened'), 'w'));
  fs.copyFileSync(at('sync'), at('copied'));
  fs.renameSync(at('copied'), at('renamed'));
  const names = ['sync', 'promised', 'stream', 'opened', 'copied', 'renamed'];
  assert.deepStrictEqual(told(), names.map(at));
});

test('what is read, or lies elsewhere, is not told', () => {
  const before = told();
  fs.closeSync(fs.openSync(at('sync')));
  fs.readFileSync(at('sync'));
  fs.writeFileSync(path.join(os.tmpdir(), `${path.basename(suite)}.facts`), '', { flag: 'a' });
  assert.throws(() => fs.writeFileSync(7.5, ''));
  assert.deepStrictEqual(told(), before);
});

test('named imports of a module are watched as well', async () => {
  const { writeFileSync } = await import('node:fs');
  writeFileSync(at('imported'), '');
  assert.ok(told().includes(at('imported')));
});
