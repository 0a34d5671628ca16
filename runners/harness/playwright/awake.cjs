'use strict';
// The agent asks a run to end by SIGINT. That the script's own process hears it tells a script that
// waits from one that holds everything up.

const path = require('node:path');
const { report } = require('./facts.cjs');

/** What Playwright starts its workers with: today's, and that of 1.51 and its like. */
const ENTRIES = ['lib/worker/workerProcessEntry.js', 'lib/common/process.js'];

function isWorker(file) {
  return ENTRIES.some((entry) => String(file).endsWith(path.join('playwright', entry)));
}

function tell() {
  report({ fact: 'awake', worker: Number(process.env.TEST_WORKER_INDEX ?? -1) });
}

/** In a worker of its own process: there, nothing ends by this signal. */
function install() {
  if (isWorker(process.argv[1])) process.on('SIGINT', tell);
}

module.exports = { install, isWorker, tell };
