// The script's process.env: the check's variables, and an ear for secrets.
'use strict';

const SECRET = /^SERVICE_SECRET_/;
// Each is searched for, in all its encoded forms, in everything that leaves the agent.
const MAX_SECRETS = 20;
const MAX_SECRET_BYTES = 16384;

/** Tells each value that is secret before the script can print it. */
function ear(job, channel) {
  const isSecret = (name) => SECRET.test(name) || job.secretNames.includes(name);
  const heard = new Set();
  let bytes = 0;
  return (name, value) => {
    if (typeof name !== 'string' || !isSecret(name) || value === '' || heard.has(value)) return;
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
  const hear = ear(job, channel);
  const heard = (target) => new Proxy(target, {
    set(inner, name, value) {
      hear(name, String(value));
      inner[name] = value;
      return true;
    },
    defineProperty(inner, name, described) {
      if ('value' in described) hear(name, String(described.value));
      return Reflect.defineProperty(inner, name, described);
    },
  });
  let env = heard(real);
  // A script may put another object in its place: what that holds, and gets later, is heard too.
  Object.defineProperty(process, 'env', {
    configurable: true,
    enumerable: true,
    get: () => env,
    set(given) {
      for (const [name, value] of Object.entries(given ?? {})) hear(name, String(value));
      env = heard(Object(given));
    },
  });
  const changed = () => {
    const all = Object.entries(env).map(([name, value]) => [name, String(value)]);
    const given = all.filter(([name, value]) => ours[name] !== value);
    return Object.fromEntries(given.map(([name, value]) => [name, value.toWellFormed()]));
  };
  return { changed };
}

module.exports = { openEnvironment };
