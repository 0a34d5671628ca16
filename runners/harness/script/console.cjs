// What the script logs: each call a fact with its time and level, within limits.
'use strict';

const util = require('node:util');

const LEVELS = {
  debug: 'DEBUG',
  info: 'INFO',
  log: 'INFO',
  warn: 'WARN',
  error: 'ERROR',
  trace: 'DEBUG',
};
const MAX_LINES = 1000;
const MAX_CHARS = 8192;

/** Text that every JSON reader takes, cut where it is too long. */
function message(parts) {
  const text = util.format(...parts).toWellFormed();
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS - 1).toWellFormed()}…` : text;
}

function collectConsole(channel) {
  const began = performance.now();
  let lines = 0;
  const write = (level, parts) => {
    lines += 1;
    if (lines > MAX_LINES + 1) return;
    const isOver = lines > MAX_LINES;
    const said = isOver
      ? `The script logged more than ${MAX_LINES} lines; the rest is left out.`
      : message(parts);
    const afterMs = performance.now() - began;
    channel.tell({ fact: 'log', afterMs, level: isOver ? 'WARN' : level, message: said });
  };
  for (const [name, level] of Object.entries(LEVELS)) {
    console[name] = (...parts) => write(level, parts);
  }
}

/** Whether the script went past the console: then there is more to read than facts. */
function watchStreams() {
  const watched = { used: false };
  for (const name of ['stdout', 'stderr']) {
    const { get } = Object.getOwnPropertyDescriptor(process, name);
    const open = () => {
      watched.used = true;
      return get.call(process);
    };
    Object.defineProperty(process, name, { get: open, configurable: true, enumerable: true });
  }
  return watched;
}

module.exports = { collectConsole, watchStreams };
