'use strict';
// Which proxy traffic goes through: the gate if nothing may go past it, the script's own, or the gate.

const settings = require('./settings.cjs');

const PASSING_BY = /^--(no-proxy-server|proxy-|host-resolver-rules|host-rules)/;
const WEBRTC = '--force-webrtc-ip-handling-policy=disable_non_proxied_udp';
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** For a browser, or for requests without one. */
function of(own) {
  if (settings.gate) return { server: settings.gate };
  return own ?? settings.playwrightConfig.use?.proxy ?? settings.proxy ?? undefined;
}

/** For whoever shows client certificates of its own, so that Playwright itself speaks TLS: it would
 * go past its browser's proxy. */
function withCertificates(own) {
  if (settings.gate) return settings.certificatesProxy;
  return own ?? settings.playwrightConfig.use?.proxy ?? settings.certificatesProxy ?? undefined;
}

/** The options of a context, which takes its browser's proxy if it has none of its own. */
function inContext(options) {
  if (options.clientCertificates?.length) {
    return { ...options, proxy: withCertificates(options.proxy) };
  }
  // Named though undefined, so that Playwright Test fills in none from its configuration.
  return settings.gate ? { ...options, proxy: undefined } : options;
}

/** For a browser, which with a persistent context may show client certificates. */
function inLaunch(options) {
  return options.clientCertificates?.length ? withCertificates(options.proxy) : of(options.proxy);
}

/** The options of requests without a browser. */
function inRequests(options) {
  const proxy = inLaunch(options ?? {});
  return proxy ? { ...options, proxy } : options;
}

/** What keeps a browser from talking past the gate, also without the defaults of Playwright. */
function extraArguments(options = {}) {
  if (!settings.gate) return [];
  const named = [`--proxy-server=${inLaunch(options).server}`, '--proxy-bypass-list=<-loopback>'];
  return [WEBRTC, ...(options.ignoreDefaultArgs === true ? named : [])];
}

/** Which defaults of Playwright's the script leaves out: none that lead through the gate. */
function leftOut(defaults) {
  if (!settings.gate || !Array.isArray(defaults)) return defaults;
  return defaults.filter((one) => !PASSING_BY.test(one) && one !== WEBRTC);
}

/** With a gate, a browser elsewhere would talk past it. */
function requireOwnBrowser(given) {
  if (!settings.gate) return;
  const endpoint = typeof given === 'string' ? given : (given?.wsEndpoint ?? given?.endpointURL);
  const host = new URL(endpoint).hostname;
  if (LOOPBACK.test(host)) return;
  throw new Error(
    `Egress rules apply at this location: a script connects to browsers of its own, and ${host} ` +
      'is another machine.',
  );
}

/** Whether an argument of the script's leaves the gate where it is. */
function mayStand(argument) {
  return !settings.gate || !PASSING_BY.test(argument);
}

module.exports = {
  extraArguments,
  inContext,
  inLaunch,
  inRequests,
  leftOut,
  mayStand,
  requireOwnBrowser,
};
