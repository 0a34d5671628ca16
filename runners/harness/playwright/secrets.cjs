'use strict';
// An ear for secrets: what a script assigns to SERVICE_SECRET_… is told before it is set, so that a
// script that dies in its next line has told it.

const { hearEnvironment } = require('../script/heard_environment.cjs');
const { pipeNumber, report } = require('./facts.cjs');
const { partsOf } = require('./secret_parts.cjs');
const settings = require('./settings.cjs');

const SECRET = /^SERVICE_SECRET_/;
// Each is searched for, in all its encoded forms, in everything that leaves the agent.
const MOST = 20;
const MOST_BYTES = 128 * 1024;
// The commonest of what the agent hides none of (it knows more).
const SHORTEST = 4;
const COMMON = /^(true|false|null|none|https?(:\/\/)?|localhost|\*+)$/i;
// In base64; with what is around it a piece fits on a line of facts.
const PIECE = 3000;

const { byteLength, from } = Buffer;
const { String: text } = globalThis;

function tell(value, number) {
  const whole = from(value).toString('base64');
  for (let at = 0; at < whole.length; at += PIECE) {
    const last = at + PIECE >= whole.length;
    report({ fact: 'secret', from: process.pid, number, piece: whole.slice(at, at + PIECE), last });
  }
}

/** Tells each new value once; what could not be searched for is refused before it is set. */
function ear(known) {
  let told = 0;
  return (name, given) => {
    if (typeof name !== 'string' || !SECRET.test(name)) return;
    const value = text(given).toWellFormed();
    if (value === '' || known.has(value)) return;
    const bytes = byteLength(value);
    if (bytes > MOST_BYTES) {
      throw new RangeError(`${name} has ${bytes} bytes; a secret may have ${MOST_BYTES}`);
    }
    if (told === MOST) {
      throw new RangeError(`${name} is one secret too many; a script may set at most ${MOST}`);
    }
    known.add(value);
    tell(value, ++told);
  };
}

const known = new Set();

/** What must not be seen, as far as this process knows, and the agent looks for. */
function values() {
  const all = [...known].flatMap(partsOf);
  return [...new Set(all)].filter((value) => value.length >= SHORTEST && !COMMON.test(value));
}

function install() {
  pipeNumber();
  const isSecret = (name) => SECRET.test(name) || settings.secretNames.includes(name);
  for (const [name, value] of Object.entries(process.env)) if (isSecret(name)) known.add(value);
  hearEnvironment(ear(known));
}

module.exports = { MOST, MOST_BYTES, install, values };
