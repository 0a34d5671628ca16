'use strict';
// Browsers are started as this location has them, and each of their contexts is watched.

const settings = require('./settings.cjs');
const contexts = require('./contexts.cjs');
const launches = require('./launches.cjs');
const plainFiles = require('./plain_files.cjs');
const proxies = require('./proxies.cjs');
const requests = require('./requests.cjs');

const NO_BROWSER =
  'A multi-step check starts no browser: use the `request` fixture, or make it a browser check.';

const seen = new WeakSet();
const open = new Set();
let calls = 0;

function once(object) {
  if (!object || seen.has(object)) return false;
  seen.add(object);
  return true;
}

/** The launch options of the script, with our browser and without what chooses another. */
function ours(options = {}) {
  return {
    ...options,
    headless: true,
    channel: undefined,
    executablePath: settings.browser,
    args: [
      ...(options.args ?? []).filter(proxies.mayStand),
      ...settings.browserArguments,
      ...proxies.extraArguments(options),
    ],
    ignoreDefaultArgs: proxies.leftOut(options.ignoreDefaultArgs),
    proxy: proxies.inLaunch(options),
    ...(process[Symbol.for('picket.plain')] ? plainFiles.launchOptions() : {}),
  };
}

function refuse(name) {
  if (!settings.browser) throw new Error(NO_BROWSER);
  if (name !== 'chromium') {
    throw new Error(`There is no ${name} at this location, only Chromium.`);
  }
}

const launched = (start, options) => launches.watched(async () => start(ours(options)), options);

async function wrapBrowser(browser) {
  if (!once(browser)) return browser;
  open.add(browser);
  browser.on('disconnected', () => open.delete(browser));
  const newContext = browser.newContext;
  browser.newContext = async function (options) {
    const context = await newContext.call(this, contexts.options(options));
    await wrapContext(context);
    return context;
  };
  const close = browser.close;
  browser.close = async function (...given) {
    const all = this.contexts();
    return contexts.whileClosing(all, given[0], async () => {
      await Promise.all(all.map(contexts.beforeEnd));
      return close.apply(this, given);
    });
  };
  await Promise.all(browser.contexts().map(wrapContext));
  return browser;
}

async function wrapContext(context) {
  if (!once(context)) return;
  requests.watch(context.request);
  await contexts.watch(context);
}

function wrapLaunches(type) {
  const { launch, launchPersistentContext } = type;
  type.launch = async function (options) {
    refuse(type.name());
    return wrapBrowser(await launched((own) => launch.call(this, own), options));
  };
  type.launchPersistentContext = async function (folder, options) {
    refuse(type.name());
    const start = (own) => launchPersistentContext.call(this, folder, own);
    const context = await launched(start, contexts.options(options));
    await wrapContext(context);
    return context;
  };
}

function wrapType(type) {
  if (!once(type)) return;
  wrapLaunches(type);
  const launchServer = type.launchServer;
  type.launchServer = function (options) {
    refuse(type.name());
    return launched((own) => launchServer.call(this, own), options);
  };
  for (const name of ['connect', 'connectOverCDP']) {
    const connect = type[name];
    if (!connect) continue;
    type[name] = async function (...given) {
      if (!settings.browser) throw new Error(NO_BROWSER);
      proxies.requireOwnBrowser(given[0]);
      return wrapBrowser(await connect.apply(this, given));
    };
  }
}

function titleOf(call, channel) {
  const given = channel?.params ?? call.params ?? {};
  const about = given.url ?? given.selector ?? '';
  return about ? `${call.apiName} ${about}` : String(call.apiName);
}

/** Counts the calls under way; a plain script has no reporter, so its calls are told from here. */
function watchCalls(playwright) {
  const isPlain = Boolean(process[Symbol.for('picket.plain')]);
  let next = 0;
  playwright._instrumentation?.addListener({
    onApiCallBegin(call, channel) {
      calls += 1;
      // Playwright's own calls are made known without a name by some of its versions.
      if (!isPlain || !call.apiName) return;
      call.picketId = next++;
      const frame = call.frames?.[0];
      const where = frame && { file: frame.file, line: frame.line, column: frame.column };
      require('./steps.cjs').began(call.picketId, titleOf(call, channel), 'pw:api', where);
    },
    onApiCallEnd(call) {
      calls -= 1;
      if (isPlain && call.picketId !== undefined) {
        require('./steps.cjs').ended(call.picketId, call.error?.message);
      }
    },
  });
}

module.exports = { open, ours, wrapType, watchCalls, callsUnderWay: () => calls };
