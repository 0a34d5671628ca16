'use strict';
// A video's encoder is started where somebody will see the video, with all that was shown before.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { mock, test } = require('node:test');

mock.timers.enable({ apis: ['setTimeout'] }); // before it is loaded, as it keeps the timers of its start
const { LateEncoder, isVideo } = require('../../../runners/harness/playwright/late_encoder.cjs');

const FRAME = Buffer.alloc(1024 * 1024, 'a');

/** An encoder that gives back what it is told, and how often one was started. */
function anEncoder({ isLeft }) {
  const started = [];
  const start = () => {
    started.push(spawn('cat', { stdio: 'pipe' }));
    return started.at(-1);
  };
  return { encoder: new LateEncoder(start, () => isLeft), started };
}

async function textOf(stream) {
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += chunk;
  return text;
}

test('no process is started for a video that nobody will see', async () => {
  const { encoder, started } = anEncoder({ isLeft: true });
  encoder.stdin.write('one');
  encoder.stdin.end();
  assert.deepEqual(await once(encoder, 'close'), [0, null]);
  assert.equal(started.length, 0);
});

test('one that is wanted is told everything, in order, and its end is the end', async () => {
  const { encoder, started } = anEncoder({ isLeft: false });
  for (const word of ['one ', 'two ', 'three']) encoder.stdin.write(word);
  assert.equal(started.length, 0);
  const text = textOf(encoder.stdout);
  encoder.stdin.end();
  assert.deepEqual(await once(encoder, 'close'), [0, null]);
  assert.equal(await text, 'one two three');
  assert.equal(started.length, 1);
});

test('it starts before too much is held, and goes on as it comes', async () => {
  const { encoder, started } = anEncoder({ isLeft: true });
  const text = textOf(encoder.stdout);
  for (let count = 0; count < 10; count += 1) encoder.stdin.write(Buffer.from(FRAME));
  encoder.stdin.end('last');
  await once(encoder, 'close');
  assert.equal(started.length, 1);
  assert.equal((await text).length, 10 * FRAME.length + 4);
});

test('it starts within two seconds, as what is held is lost with a script that hangs later', async () => {
  const { encoder, started } = anEncoder({ isLeft: true });
  encoder.stdin.write('one ');
  mock.timers.tick(1_999);
  assert.equal(started.length, 0);
  mock.timers.tick(1);
  assert.equal(started.length, 1);
  const text = textOf(encoder.stdout);
  encoder.stdin.end('two');
  await once(encoder, 'close');
  assert.equal(await text, 'one two');
});

test('a frame that lasts is held once, however often it comes', async () => {
  const { encoder, started } = anEncoder({ isLeft: true });
  for (let count = 0; count < 100; count += 1) encoder.stdin.write(FRAME);
  encoder.stdin.end();
  await once(encoder, 'close');
  assert.equal(started.length, 0);
});

test('until it is started, signals for it reach nobody', () => {
  const { encoder } = anEncoder({ isLeft: true });
  assert.ok(encoder.pid && encoder.killed);
  assert.equal(encoder.kill(), false);
  assert.throws(() => process.kill(-encoder.pid, 0), { code: 'ESRCH' });
  encoder.stdin.end();
});

test('videos that a script puts somewhere itself are encoded as they come', () => {
  const program = '/browsers/ffmpeg-1013/ffmpeg-linux';
  assert.ok(isVideo(program, ['-y', '/run/output/.playwright-artifacts-0/page.webm']));
  assert.ok(!isVideo(program, ['-y', '/run/check/videos/page.webm']));
  assert.ok(!isVideo('/usr/lib/chromium/headless', ['/run/.playwright-artifacts-0/page.webm']));
});
