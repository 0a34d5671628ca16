'use strict';
// What is typed letter by letter is told before the page sees it.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');

const HARNESS = path.join(__dirname, '../../../runners/harness/playwright');

function facts(script) {
  const program = `const typing = require('${HARNESS}/typing.cjs'); ${script}`;
  const printed = execFileSync(process.execPath, ['-e', program], {
    env: { PICKET_FACTS_FD: '1' },
    encoding: 'utf8',
  });
  return printed.split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

function told(script) {
  return facts(script).map(({ text }) => text && Buffer.from(text, 'base64').toString());
}

const CONNECTED = `
  class Connection { sendMessageToServer(object, method, params) { process.stdout.write('{"sent":true}\\n'); } }
  const connection = new Connection();
  typing.watch({ chromium: { _connection: connection } });
  const send = (method, params) => connection.sendMessageToServer({}, method, params);
`;

test('texts and keys are told, and what types no letter is not', () => {
  const script = `for (const [method, params] of ${JSON.stringify([
    ['type', { selector: '#a', text: 'Zebra ü' }],
    ['keyboardType', { text: 'on' }],
    ['fill', { value: 'filled' }],
    ['fill', { value: 'f' }],
    ['press', { key: 'Z' }],
    ['keyboardPress', { key: 'Enter' }],
    ['keyboardPress', { key: 'Escape' }],
    ['keyboardDown', { key: 'Shift+KeyA' }],
    ['keyboardInsertText', { text: 'x' }],
    ['keyboardInsertText', { text: 'whole' }],
  ])}) typing.hear(method, params);`;
  assert.deepEqual(told(script), ['Zebra ü', 'on', 'f', 'Z', '\n', 'A', 'x']);
});

function ofKeys(...keys) {
  return told(`for (const key of ${JSON.stringify(keys)}) typing.hear('press', { key });`);
}

test('keys by their code type what they do with Shift and without', () => {
  const keys = ['KeyP', 'Digit7', 'Shift+Digit7', 'Quote', 'Shift+Quote', 'Shift+Equal', 'NumpadAdd', 'Shift+Numpad4'];
  assert.equal(ofKeys(...keys, 'Shift++', 'Shift+a').join(''), 'p7&\'"++4+a');
  const held = ['keyboardDown', 'keyboardPress', 'keyboardUp', 'keyboardPress'].map((method, at) =>
    `typing.hear('${method}', { key: '${at % 2 ? 'Slash' : 'ShiftLeft'}' });`);
  assert.equal(told(held.join('')).join(''), '?/');
});

test('what is taken off is told, and keys that type nothing are not', () => {
  assert.deepEqual(ofKeys('a', 'Backspace', 'Escape', 'Shift', 'Control+A', 'Delete', 'b'), ['a', '\b', 'b']);
});

test('after a key that moves elsewhere, or is not known, any text may have been typed', () => {
  for (const key of ['Home', 'ArrowLeft', 'Control+v', 'Numpad7', 'Strange']) {
    assert.deepEqual(ofKeys(key, 'a', key, key, 'Tab'), ['a', '\t'], key);
    assert.deepEqual(ofKeys('a', key, 'b', 'c'), ['a', null], key);
    assert.deepEqual(ofKeys('a', key, 'Delete'), ['a', null], key);
  }
  const script = "for (const key of ['a', 'Home', 'b']) typing.hear('press', { key });";
  const told = facts(`${script} console.log(JSON.stringify({ all: typing.typedOf(['Zebra']) }));`);
  assert.deepEqual(told.at(-1).all, ['Zebra']);
});

test('a secret was typed when its beginning was, with what was taken off or without', () => {
  for (const keys of ['Zex<br', 'xZe<br']) {
    const script = `for (const key of '${keys}') typing.hear('press', { key: key === '<' ? 'Backspace' : key });
      console.log(JSON.stringify({ typed: typing.typedOf(['Zebra', 'Yellow']) }));`;
    assert.deepEqual(facts(script).at(-1).typed, ['Zebra']);
  }
});

test('it is told before the call is sent', () => {
  const heard = facts(`${CONNECTED} send('type', { text: 'Zebra' }); send('click', {});`);
  assert.deepEqual(heard.map(({ fact, sent }) => fact ?? sent), ['typed', true, true]);
});

test('a Playwright that is built otherwise may have typed anything', () => {
  assert.deepEqual(told('typing.watch({ chromium: {} });'), [null]);
});

test('a long text comes in lines that a pipe takes at once, and of very many only the first', () => {
  assert.equal(told("typing.hear('type', { text: 'ü'.repeat(3000) });").join(''), 'ü'.repeat(3000));
  const many = told("for (let at = 0; at < 2100; at++) typing.hear('press', { key: 'a' });");
  assert.equal(many.length, 2001);
  assert.equal(many.at(-1), null);
});

test('a secret was typed when its beginning was', () => {
  const script = `for (const key of 'my Zebr') typing.hear('press', { key });
    console.log(JSON.stringify({ text: Buffer.from(String(typing.typedOf(['Zebra+1', 'Yellow']))).toString('base64') }));`;
  assert.equal(told(script).at(-1), 'Zebra+1');
});
