'use strict';
// A pipe tells stdout from stderr, and no more: what is a warning or for debugging is told beside it.

const util = require('node:util');
const { report } = require('./facts.cjs');

const LEVELS = { warn: 'WARN', debug: 'DEBUG' };
const MOST = 1000;

function tellLevels() {
  let told = 0;
  for (const [name, level] of Object.entries(LEVELS)) {
    const print = console[name];
    console[name] = function (...given) {
      if (told++ < MOST) report({ fact: 'level', level, message: util.format(...given) });
      return print.apply(this, given);
    };
  }
}

module.exports = { tellLevels };
