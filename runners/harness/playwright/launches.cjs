'use strict';
// Tells of each browser that is being started, until it is there or will never be.

const { report } = require('./facts.cjs');

const UNFINISHED = 'The process ended while a browser was being started.';

const { now } = Date;
const open = new Map();
let count = 0;

/** With such options the script may have kept the browser from starting. */
function isOwn(options) {
  return Boolean(options?.args?.length || options?.ignoreDefaultArgs || options?.env);
}

/** Whether the script's process computed for most of the time, and so kept Playwright from its work. */
function isBusy(cpu, waitedMs) {
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / 1000 > waitedMs / 2;
}

function fail(launch, message) {
  const { began, cpu, options } = open.get(launch);
  open.delete(launch);
  const waitedMs = Math.max(0, now() - began);
  const own = isOwn(options) || isBusy(cpu, waitedMs);
  report({ fact: 'launchFailed', launch, message, own, waitedMs });
}

/** `start` promises a browser; what the script gave are `options`. */
async function watched(start, options) {
  const launch = `${process.pid}-${count++}`;
  if (count === 1) process.once('exit', () => [...open.keys()].forEach((one) => fail(one, UNFINISHED)));
  open.set(launch, { began: now(), cpu: process.cpuUsage(), options });
  report({ fact: 'launching', launch, own: isOwn(options) });
  try {
    const browser = await start();
    open.delete(launch);
    report({ fact: 'launched', launch });
    return browser;
  } catch (error) {
    fail(launch, String(error?.message ?? error));
    throw error;
  }
}

module.exports = { watched };
