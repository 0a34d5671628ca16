'use strict';
// Where in the user's own files an error came from: the first frame that is there.

const { place } = require('./steps.cjs');

function locationOf([, file, line, column]) {
  return { file, line: Number(line), column: Number(column) };
}

/** As `script.js:5:14`; null when no frame is in the user's own files. */
function whereOf(error) {
  const frames = String(error.stack ?? '').matchAll(/\(?([^\s(]+?):(\d+):(\d+)\)?$/gm);
  const places = [error.location, ...[...frames].map(locationOf)];
  return places.map(place).find(Boolean) ?? null;
}

module.exports = { whereOf };
