// The script's process.env: the check's variables, and an ear for secrets.
'use strict';

const { hearEnvironment } = require('./heard_environment.cjs');

const { String: text } = globalThis;
const SECRET = /^SERVICE_SECRET_/;
// Each is searched for, in all its encoded forms, in everything that leaves the agent.
const MAX_SECRETS = 20;
const MAX_SECRET_BYTES = 16384;

/** Tells each value that is secret before the script can print it. */
function ear(job, channel) {
  const isSecret = (name) => SECRET.test(name) || job.secretNames.includes(name);
  const heard = new Set();
  let bytes = 0;
  return (name, given) => {
    if (typeof name !== 'string' || !isSecret(name)) return;
    const value = text(given);
    if (value === '' || heard.has(value)) return;
    heard.add(value);
    bytes += Buffer.byteLength(value);
    if (heard.size > MAX_SECRETS || bytes > MAX_SECRET_BYTES) {
      const limit = `at most ${MAX_SECRETS} secrets of ${MAX_SECRET_BYTES} bytes together`;
      throw new RangeError(`${name} is one secret too many; a script may set ${limit}`);
    }
    channel.tell({ fact: 'secret', value: value.toWellFormed() });
  };
}

function openEnvironment(job, channel) {
  const real = process.env;
  const ours = { ...real };
  Object.assign(real, job.env);
  const environment = hearEnvironment(ear(job, channel));
  const changed = () => {
    const all = Object.entries(environment()).map(([name, value]) => [name, String(value)]);
    const given = all.filter(([name, value]) => ours[name] !== value);
    return Object.fromEntries(given.map(([name, value]) => [name, value.toWellFormed()]));
  };
  return { changed };
}

module.exports = { openEnvironment };
