'use strict';
// A browser for one short run goes without what pays off in long ones: a renderer in reserve for the
// next site, and a process of its own for the network, which costs a tenth of a run on one page.
// Chromium heeds the last of several lists of features only, so ours are added to that.

const childProcess = require('node:child_process');

const WANTED = {
  '--disable-features=': ['SpareRendererForSitePerProcess'],
  '--enable-features=': ['NetworkServiceInProcess2'],
};

function listed(args, prefix) {
  const last = args.findLast((arg) => arg.startsWith(prefix));
  return last ? last.slice(prefix.length).split(',').filter(Boolean) : [];
}

/** The arguments with our features, but for those that a script or Playwright decides on itself. */
function withFeatures(args) {
  const decided = Object.keys(WANTED).flatMap((prefix) => listed(args, prefix));
  const added = Object.entries(WANTED).map(([prefix, names]) => {
    const ours = names.filter((name) => !decided.some((one) => one.split(/[<:]/)[0] === name));
    return prefix + [...listed(args, prefix), ...ours].join(',');
  });
  return [...added.reduce(replaceLast, args)];
}

/** Behind switches come addresses, so a list takes the place of the one that it is made of. */
function replaceLast(args, list) {
  const prefix = list.slice(0, list.indexOf('=') + 1);
  const place = args.findLastIndex((arg) => arg.startsWith(prefix));
  return place < 0 ? [list, ...args] : args.with(place, list);
}

/** What ended a browser that did not end by itself. */
function tellSignal(_code, signal) {
  if (signal) require('./facts.cjs').report({ fact: 'browserKilled', signal });
}

let isInstalled = false;

function install() {
  if (isInstalled) return;
  isInstalled = true;
  const { spawn } = childProcess;
  childProcess.spawn = function (file, args, ...more) {
    // Asked for at the call: a process that waits for its job has no settings before.
    const isBrowser = Array.isArray(args) && file === require('./settings.cjs').browser;
    const child = spawn.call(this, file, isBrowser ? withFeatures(args) : args, ...more);
    if (isBrowser) child.once('exit', tellSignal);
    return child;
  };
}

module.exports = { install, withFeatures };
