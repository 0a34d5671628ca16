'use strict';
// How secrets look on a page: in the usual forms, with what no eye sees within, and as far as typed.

const secrets = require('./secrets.cjs');
const typing = require('./typing.cjs');

const MOST_CHARS = 200; // of a long secret: an element that shows it shows its beginning
const BETWEEN_LINES = '[\\s\\x22\\x27+,-]*'; // of a field of one line, of lists and of differences
const UNSEEN = '[\\s\u00ad\u034f\u200b-\u200f\u2060-\u2064\ufeff]*'; // soft hyphens and the like

/** A secret as pages show it. */
function formsOf(secret) {
  const bytes = Buffer.from(secret);
  return [
    encodeURIComponent(secret),
    encodeURI(secret),
    new URLSearchParams([['', secret]]).toString().slice(1),
    JSON.stringify(secret).slice(1, -1),
    secret.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`),
    bytes.toString('base64').slice(0, Math.floor((bytes.length * 8) / 6)),
    bytes.toString('base64url').slice(0, Math.floor((bytes.length * 8) / 6)),
    bytes.toString('hex'),
  ];
}

const literal = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');

function patternOf(form) {
  return literal(form.slice(0, MOST_CHARS).trim()).replace(/\s+/g, '\\s+');
}

/** The text as it is, whatever stands between its characters that no eye sees. */
function seenAs(secret) {
  const chars = [...secret.slice(0, MOST_CHARS).trim().replace(/\s*\n\s*/g, '\n').replace(/[^\S\n]+/g, ' ')];
  const gaps = { ' ': '\\s+', '\n': BETWEEN_LINES };
  return chars.map((char) => gaps[char] ?? literal(char)).join(UNSEEN);
}

/** What matches any secret that is known now; null: there is none. */
function anySecret() {
  const known = secrets.values();
  const begun = typing.typedOf(known).map((secret) => secret.slice(0, typing.SHORTEST));
  const sought = [...known, ...begun];
  const patterns = [...sought.map(seenAs), ...sought.flatMap(formsOf).map(patternOf)];
  const all = [...new Set(patterns)].filter(Boolean);
  return all.length ? new RegExp(all.join('|'), 'i') : null;
}

/** Whether a field's value is the first letters of a secret that is being typed. */
function isBegun(value) {
  return value !== '' && typing.typedOf(secrets.values()).some((secret) => secret.startsWith(value));
}

/** Places of values of one letter each, as fields of a code have them, that begin a secret together. */
function spelled(values) {
  const known = secrets.values();
  const found = [];
  for (let at = 0; at < values.length; at++) {
    const row = rowFrom(values, at);
    const size = Math.max(0, ...known.map((secret) => shared(row, secret)));
    if (size > 1) found.push(...[...Array(size).keys()].map((one) => at + one));
  }
  return new Set(found);
}

/** The letters of the fields from a place on that hold one each. */
function rowFrom(values, start) {
  const end = values.findIndex((value, at) => at >= start && [...value].length !== 1);
  return values.slice(start, end < 0 ? undefined : end).join('');
}

/** How many letters both begin with. */
function shared(one, other) {
  const differs = [...one].findIndex((letter, at) => letter.toLowerCase() !== other[at]?.toLowerCase());
  return differs < 0 ? one.length : differs;
}

module.exports = { anySecret, isBegun, spelled };
