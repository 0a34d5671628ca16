'use strict';
// Pages can tell a suite's visits from those of people: the name of who runs it ends the user agent
// that nobody wrote, Chromium's own or that of one of Playwright's devices. Any other one stays.

const browsers = require('./browsers.cjs');

const name = process.env.PICKET_USER_AGENT ?? '';
const ofDevices = new Set();

/** What Chromium without a window says of itself, when nobody says otherwise. */
function ownAgent(version) {
  const engine = 'AppleWebKit/537.36 (KHTML, like Gecko)';
  const major = version.split('.')[0];
  return `Mozilla/5.0 (X11; Linux x86_64) ${engine} HeadlessChrome/${major}.0.0.0 Safari/537.36`;
}

/** The user agent that a context gets: the one that is set, or else the browser's own. */
function signed(set, own) {
  const agent = set ?? own;
  if (!agent || agent.endsWith(name)) return agent;
  return agent === own || ofDevices.has(agent) ? `${agent} ${name}` : agent;
}

/** Where Playwright up to 1.51 keeps a project's options; later ones merge them while they start. */
function projectOptions(type) {
  const owner = [type, type._playwright].find((one) => one && '_defaultContextOptions' in one);
  return owner && (owner._defaultContextOptions ?? {});
}

/** Calls with the user agent signed, once the project's options and the call's are both known. */
async function signing(type, given, known, call) {
  const early = projectOptions(type);
  if (early) {
    const userAgent = signed(given?.userAgent ?? early.userAgent, known);
    return call(userAgent ? { ...given, userAgent } : given);
  }
  const listener = {
    runBeforeCreateBrowserContext: async (options) => {
      options.userAgent = signed(options.userAgent, known);
      if (!options.userAgent) delete options.userAgent;
    },
  };
  // Listeners are asked in order: the last one sees what the test runner has put in.
  type._instrumentation?.addListener(listener);
  try {
    return await call(given);
  } finally {
    type._instrumentation?.removeListener(listener);
  }
}

function signBrowser(browser, type) {
  const newContext = browser.newContext;
  browser.newContext = function (given) {
    const known = ownAgent(browser.version());
    return signing(type, given, known, (options) => newContext.call(this, options));
  };
  return browser;
}

function signType(type) {
  if (type.name() !== 'chromium') return;
  const { launch, launchPersistentContext } = type;
  type.launch = async function (...given) {
    return signBrowser(await launch.apply(this, given), type);
  };
  type.launchPersistentContext = function (folder, given) {
    const call = (options) => launchPersistentContext.call(this, folder, options);
    return signing(type, given, undefined, call);
  };
}

function install() {
  if (!name) return;
  const { wrapType, watchCalls } = browsers;
  browsers.wrapType = (type) => {
    wrapType(type);
    signType(type);
  };
  browsers.watchCalls = (playwright) => {
    watchCalls(playwright);
    for (const device of Object.values(playwright.devices ?? {})) ofDevices.add(device.userAgent);
  };
}

module.exports = { install, ownAgent, signed, signing };
