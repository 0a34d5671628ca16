'use strict';
// Tells the agent what happens: one JSON value per line, on a pipe that nothing else writes to.

const fs = require('node:fs');
const settings = require('./settings.cjs');

// A pipe takes this much at once, so lines of several processes do not run into each other.
const LINE_BYTES = 4096;
// A script may put others in their place.
const { now } = Date;
const { stringify } = JSON;
const { writeSync } = fs;
const { byteLength } = Buffer;

function bytes(value) {
  return byteLength(stringify(value)) + 1;
}

function longestText(fact) {
  const texts = Object.keys(fact).filter((key) => typeof fact[key] === 'string');
  return texts.sort((one, other) => fact[other].length - fact[one].length)[0];
}

/** The fact with its longest texts cut, until it fits on a line. */
function fit(fact) {
  const fitting = { ...fact };
  while (bytes(fitting) > LINE_BYTES) {
    const key = longestText(fitting);
    if (!key || fitting[key].length < 8) return { fact: fact.fact };
    // The sign tells the agent where to look for what is left of a secret.
    fitting[key] = `${fitting[key].slice(0, Math.floor(fitting[key].length * 0.7))}…`;
    fitting.cut = true;
  }
  return fitting;
}

let known = 0;

/** The pipe's number, also after a script has put another environment in the place of ours. */
function pipeNumber() {
  known = Number(process.env?.PICKET_FACTS_FD) || known;
  return known;
}

function report(fact) {
  const pipe = pipeNumber();
  if (!pipe || (settings.facts && !settings.facts.includes(fact.fact))) return;
  try {
    writeSync(pipe, `${stringify(fit({ at: now(), ...fact }))}\n`);
  } catch {
    // The agent has stopped listening: the run is being ended.
  }
}

module.exports = { LINE_BYTES, fit, pipeNumber, report };
