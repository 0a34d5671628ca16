'use strict';
// Which parts of a secret are secret by themselves: all that the agent looks for (policy.py, PARTS),
// or a picture without a mask over one of them counts as unmasked.

const CHUNKED_FROM = 8192;
const CHUNK = 4096;
const MOST_SHORT_LINES = 256;
const LINE = 16;
const VALUE = 8;
const EDGE = '-----'; // how lines begin that all keys have in common
const ASSIGNMENT =
  /^[ \t]*(?:-[ \t]+)?(?:export[ \t]+)?["']?[\p{L}\p{N}_.-]+["']?[ \t]*[:=][ \t]*(.*)$/gmu;
const PASSWORD = /^[^:]*:\/\/[^/?#:]*:([^/?#]*)@/;

/** The secret without white space around it, its lines and values, and theirs. */
function partsOf(given) {
  const secret = given.trim();
  const parts = new Set([...lines(secret), ...values(secret), ...chunks(secret)]);
  parts.delete(secret);
  return [secret, ...[...parts].flatMap(partsOf)];
}

function lines(secret) {
  const all = secret.split('\n');
  if (all.length === 1) return [];
  const bare = all
    .map((line) => line.trim())
    .filter((line) => !line.startsWith(EDGE))
    .map((line) => line.replace(/^- /, '').replace(/^[ \t"',;]+|[ \t"',;]+$/g, ''));
  return bare.filter((line) => all.length <= MOST_SHORT_LINES || line.length >= LINE);
}

function values(secret) {
  const found = [...inJson(secret), ...assigned(secret)].map((value) => value.trim());
  const passwords = found.flatMap((value) => PASSWORD.exec(value)?.slice(1) ?? []);
  return [...found.filter((value) => value.length >= VALUE), ...passwords, ...passwords.map(decoded)];
}

function inJson(secret) {
  if (!/^[{[]/.test(secret)) return [];
  try {
    // A number may be too long to be read as one.
    return [...texts(JSON.parse(secret)), ...(secret.match(/-?[0-9][0-9.eE+-]*/g) ?? [])];
  } catch {
    return [];
  }
}

function texts(value) {
  if (typeof value === 'string') return [value];
  return value && typeof value === 'object' ? Object.values(value).flatMap(texts) : [];
}

function assigned(secret) {
  if (!secret.includes('\n')) return [];
  return [...secret.matchAll(ASSIGNMENT)].flatMap(([, rest]) => {
    const value = rest.trim().replace(/,$/, '');
    const quoted = /^(["'])(.*?)\1/.exec(value)?.[2];
    return [quoted ?? value.split(/[ \t]+#/)[0], ...unescaped(value)];
  });
}

function unescaped(value) {
  const [literal] = /^"(?:[^"\\]|\\.)*"/.exec(value) ?? [];
  try {
    return literal ? [JSON.parse(literal)] : [];
  } catch {
    return [];
  }
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function chunks(secret) {
  const chars = [...secret];
  if (chars.length <= CHUNKED_FROM || secret.includes('\n')) return [];
  const last = chars.length - CHUNK;
  const starts = [...Array(Math.ceil(last / CHUNK)).keys()].map((number) => number * CHUNK);
  return [...starts, last].map((at) => chars.slice(at, at + CHUNK).join(''));
}

module.exports = { partsOf };
