'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { aJob, libraries, play } = require('./play.cjs');

const RESPONSE = {
  statusCode: 200,
  statusText: 'OK',
  body: '{"a":1}',
  headers: { 'content-type': 'application/json' },
  timings: { end: 12.5 },
  timingPhases: { total: 12.5 },
};

function teardown(script, changes = {}) {
  return aJob(script, { file: 'teardown.js', phase: 'teardown', response: RESPONSE, ...changes });
}

test('a setup script changes the request', async () => {
  const { done } = await play(
    aJob("request.headers['X-A'] = 1; request.url += 'cart'; request.method = 'POST';"),
  );
  assert.deepEqual(done.request.headers, { 'X-A': '1' });
  assert.equal(done.request.url, 'http://shop.test/cart');
  assert.equal(done.request.method, 'POST');
});

test('top-level await works, and a return ends the script', async () => {
  const { done } = await play(
    aJob('request.body = await Promise.resolve("late"); return; request.body = "never";'),
  );
  assert.equal(done.request.body, 'late');
});

test('a teardown script changes the body and nothing else', async () => {
  const { done, failed } = await play(
    teardown("request.url = 'x'; response.statusCode = 500; response.body = 'new';"),
  );
  assert.equal(failed, undefined);
  assert.equal(done.body, 'new');
  assert.equal(done.request, null);
});

test('a strict script hears that the status cannot be changed', async () => {
  const { failed } = await play(teardown("'use strict';\nresponse.statusCode = 500;"));
  assert.match(failed.message, /TypeError/);
  assert.equal(failed.place, 'teardown.js:2:21');
});

test('setup has no response', async () => {
  const { done } = await play(aJob('request.body = typeof response;'));
  assert.equal(done.request.body, 'undefined');
});

test('the environment can be read, written and emptied', async () => {
  const { done } = await play(
    aJob('request.body = process.env.A; process.env.B = 2; delete process.env.C;', {
      env: { A: 'one', C: 'gone' },
    }),
  );
  assert.equal(done.request.body, 'one');
  assert.deepEqual(done.env, { A: 'one', B: '2' });
});

test('the region is a constant', async () => {
  const { done } = await play(aJob('REGION = "mars"; request.body = REGION;'));
  assert.equal(done.request.body, 'cellar');
});

test('a secret is told before it can be printed', async () => {
  const { facts, secrets } = await play(
    aJob('process.env.SERVICE_SECRET_A = "hush"; console.log(process.env.SERVICE_SECRET_A);'),
  );
  assert.deepEqual(secrets, ['hush']);
  const order = facts.map((one) => one.fact);
  assert.ok(order.indexOf('secret') < order.indexOf('log'));
});

test('a new value of a secret variable is told', async () => {
  const job = { env: { TOKEN: 'old' }, secretNames: ['TOKEN'] };
  const { secrets } = await play(aJob('Object.assign(process.env, { TOKEN: "fresh" });', job));
  assert.deepEqual(secrets, ['fresh']);
});

test('too many secrets are refused at the line that sets one too many', async () => {
  const { failed } = await play(
    aJob('for (let i = 0; i < 21; i += 1)\n  process.env[`SERVICE_SECRET_${i}`] = `hush ${i}`;'),
  );
  assert.match(failed.message, /^RangeError: SERVICE_SECRET_20 is one secret too many/);
  assert.equal(failed.place, 'setup.js:2:38');
});

test('what is logged has its level', async () => {
  const { logs } = await play(
    aJob('console.log("a", { b: 1 }); console.warn("c"); console.error("d"); console.debug("e");'),
  );
  assert.deepEqual(logs, [
    ['INFO', 'a { b: 1 }'],
    ['WARN', 'c'],
    ['ERROR', 'd'],
    ['DEBUG', 'e'],
  ]);
});

for (const [script, printed] of [
  ['console.log("a");', false],
  ['process.stdout.write("a");', true],
  ['console.dir({});', true],
  ['process.stderr.write("a");', true],
]) {
  test(`what goes past the console is announced: ${script}`, async () => {
    const { done } = await play(aJob(script));
    assert.equal(done.printed, printed);
  });
}

test('a script that floods its log is cut with a notice', async () => {
  const { logs } = await play(aJob('for (let i = 0; i < 5000; i += 1) console.log(i);'));
  assert.equal(logs.length, 1001);
  assert.deepEqual(logs[1000], [
    'WARN',
    'The script logged more than 1000 lines; the rest is left out.',
  ]);
});

test('an error has the line of the user', async () => {
  const { failed } = await play(aJob('const a = 1;\n\n      nothing();'));
  assert.equal(failed.message, 'ReferenceError: nothing is not defined');
  assert.equal(failed.place, 'setup.js:3:7');
  assert.ok(!failed.stack.includes('main.cjs'));
});

test('an error on the first line has its column', async () => {
  const { failed } = await play(aJob('nothing();'));
  assert.equal(failed.place, 'setup.js:1:1');
});

test('a syntax error has the line of the user', async () => {
  const { failed } = await play(aJob('const a = 1;\nlet = ;'));
  assert.match(failed.message, /^SyntaxError: /);
  assert.equal(failed.place, 'setup.js:2');
});

test('an error in a snippet has the line of the snippet', async () => {
  const snippets = { 'snippets/login.js': 'module.exports = () => {\n  nothing();\n};' };
  const { failed } = await play(aJob("require('./snippets/login')();", { snippets }));
  assert.equal(failed.place, 'snippets/login.js:2:3');
});

for (const thrown of ['"words"', 'null', '{ a: 1 }', 'new Proxy({}, { get() { throw 1 } })']) {
  test(`whatever is thrown is told: ${thrown}`, async () => {
    const { failed } = await play(aJob(`throw ${thrown};`));
    assert.equal(typeof failed.message, 'string');
    assert.ok(failed.message.length > 0);
  });
}

test('an error in a timer fails the script', async () => {
  const { failed } = await play(
    aJob('setTimeout(() => { throw new Error("later"); });\nawait new Promise(() => {});'),
  );
  assert.equal(failed.message, 'Error: later');
});

test('a promise that nobody catches fails the script', async () => {
  const { failed } = await play(
    aJob('Promise.reject(new Error("lost"));\nawait new Promise((r) => setTimeout(r, 1000));'),
  );
  assert.equal(failed.message, 'Error: lost');
});

test('a wait for nothing is named', async () => {
  const { failed } = await play(aJob('await new Promise(() => {});'));
  assert.match(failed.message, /waits for something that cannot come/);
});

test('a script that ends its process tells nothing', async () => {
  const { code, done, failed } = await play(aJob('process.exit(3);'));
  assert.deepEqual([code, done, failed], [3, undefined, undefined]);
});

test('a timer that is left over does not keep the script', async () => {
  const { done } = await play(aJob('setInterval(() => {}, 1000);'));
  assert.ok(done);
});

test('a library of the runtime can be required', async () => {
  const job = aJob("request.body = require('greeter').greet('you');", { modules: libraries() });
  const { done } = await play(job);
  assert.equal(done.request.body, 'hello you');
});

test('snippets can be required, by each other too, each once', async () => {
  const snippets = {
    'snippets/count.js': 'let n = 0; module.exports = { next: () => (n += 1) };',
    'snippets/twice.js': "const c = require('./count.js'); exports.run = () => { c.next(); };",
    'snippets/words.json': '{"word":"tea"}',
  };
  const script = `
    require('./snippets/twice').run();
    request.body = String(require('./snippets/count').next());
    request.url = require('./snippets/words.json').word;`;
  const { done } = await play(aJob(script, { snippets }));
  assert.deepEqual([done.request.body, done.request.url], ['2', 'tea']);
});

test('a snippet that there is not is named', async () => {
  const { failed } = await play(aJob("require('./snippets/login');"));
  assert.equal(failed.message, 'Error: there is no file snippets/login beside the script');
});

for (const id of ['fs', 'node:fs/promises', 'child_process', 'worker_threads', 'vm', 'module']) {
  test(`${id} is refused`, async () => {
    const { failed } = await play(aJob(`require('${id}');`));
    assert.equal(failed.message, `Error: ${id} is not there for setup and teardown scripts`);
    assert.equal(failed.place, 'setup.js:1:1');
  });
}

test('a library that there is not is named', async () => {
  const { failed } = await play(aJob("require('left-pad');", { modules: libraries() }));
  assert.equal(failed.message, 'Error: left-pad is not a library of this runtime');
});

test('Playwright is for other checks', async () => {
  const { failed } = await play(aJob("require('@playwright/test');"));
  assert.match(failed.message, /use a multi-step or browser check/);
});

for (const [what, script] of [
  ['a file', "process.getBuiltinModule('fs').readFileSync('/etc/hostname')"],
  ['the agent', "process.getBuiltinModule('fs').readFileSync(`/proc/${process.ppid}/environ`)"],
  ['a process', "process.getBuiltinModule('child_process').execSync('id')"],
  ['a thread', "new (process.getBuiltinModule('worker_threads').Worker)('1', { eval: true })"],
  ['a new file', "process.getBuiltinModule('fs').writeFileSync('out.txt', 'x')"],
]) {
  test(`a way round the list gets no hold of ${what}`, async () => {
    const { failed } = await play(aJob(`${script};`));
    assert.match(failed.message, /Access to this API has been restricted/);
  });
}

test('what is handed on is limited', async () => {
  const { failed } = await play(aJob('request.body = "x".repeat(300000);'));
  assert.match(failed.message, /has 300\d+ bytes, more than the 262144 that may pass/);
});

for (const [script, said] of [
  ['request.body = { a: 1 };', 'TypeError: request.body is an object; use a string'],
  ['request.headers = [];', 'TypeError: request.headers is an array; use an object of strings'],
  ["request.headers.A = ['b'];", "TypeError: request.headers['A'] is an array; use a string"],
  ['request = null;', 'TypeError: request is null; use an object'],
  ['delete request.url;', 'TypeError: request.url is not set; use a string'],
]) {
  test(`a request of the wrong shape is refused: ${script}`, async () => {
    const { failed } = await play(aJob(script));
    assert.equal(failed.message, said);
  });
}

test('a header that is null goes, and half a character becomes a whole one', async () => {
  const job = aJob("request.headers.a = null; request.headers.b = '\\ud800';");
  job.request.headers = { a: '1' };
  const { done } = await play(job);
  assert.deepEqual(done.request.headers, { b: '\ufffd' });
});

test('a script that breaks the globals garbles no facts', async () => {
  const { done } = await play(
    aJob('JSON.stringify = () => "{}"; process.reallyExit = () => {}; request.body = "x";'),
  );
  assert.equal(done.request.body, 'x');
});
