// What went wrong in a script, in the user's own lines.
'use strict';

const util = require('node:util');

const MAX_MESSAGE = 2000;
const MAX_STACK = 8000;

function cut(text, limit) {
  const whole = text.toWellFormed();
  return whole.length > limit ? `${whole.slice(0, limit - 1).toWellFormed()}…` : whole;
}

/** Whatever was thrown as a short text: people throw strings, objects and nothing at all. */
function words(error) {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : util.inspect(error);
  return error.message ? `${error.name}: ${error.message}` : error.name;
}

function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** The stack's lines that stand in the script or in a snippet, with the places that users know. */
function ownLines(stack, job, origin) {
  const files = [job.file, ...Object.keys(job.snippets)].map(escaped).join('|');
  const own = new RegExp(`(?:^|[( ])((?:${files}):\\d+(?::\\d+)?)\\)?$`);
  return stack.split('\n').flatMap((line) => {
    const found = own.exec(line.trim());
    if (!found) return [];
    const place = origin(found[1]);
    return [{ line: line.replace(found[1], () => place), place }];
  });
}

function describeSafely(error, job, origin) {
  const stack = error instanceof Error ? String(error.stack) : '';
  const own = ownLines(stack, job, origin);
  const said = words(error);
  return {
    message: cut(said, MAX_MESSAGE),
    place: own.length > 0 ? own[0].place : null,
    stack: cut([said, ...own.map((one) => `    ${one.line.trim()}`)].join('\n'), MAX_STACK),
  };
}

function describe(error, job, origin) {
  try {
    return describeSafely(error, job, origin);
  } catch {
    const message = 'an error that cannot be shown';
    return { message, place: null, stack: message };
  }
}

module.exports = { describe };
