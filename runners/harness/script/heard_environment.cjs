'use strict';
// A process.env that tells each value before it is set.

// As they are before a script can replace them.
const { defineProperty, entries } = Object;
const { Proxy: RealProxy, Reflect: reflect } = globalThis;

/**
 * Puts it in the place of process.env; returns what is there now.
 * A script may put another object there: what that holds, and gets later, is heard too.
 */
function hearEnvironment(hear) {
  const heard = (target) => new RealProxy(target, {
    set(inner, name, value) {
      hear(name, value);
      inner[name] = value;
      return true;
    },
    defineProperty(inner, name, described) {
      if ('value' in described) hear(name, described.value);
      return reflect.defineProperty(inner, name, described);
    },
  });
  let env = heard(process.env);
  defineProperty(process, 'env', {
    configurable: true,
    enumerable: true,
    get: () => env,
    set(given) {
      for (const [name, value] of entries(given ?? {})) hear(name, value);
      env = heard(Object(given));
    },
  });
  return () => env;
}

module.exports = { hearEnvironment };
