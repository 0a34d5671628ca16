// The globals `request` and `response`: what a script sees of them, and what it may change.
'use strict';

function kind(value) {
  if (value === undefined) return 'not set';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function deepFreeze(value) {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(deepFreeze);
    Object.freeze(value);
  }
  return value;
}

/** In setup the request may be changed, or another one put in its place. */
function exposeRequest(job) {
  globalThis.request = job.phase === 'setup' ? job.request : deepFreeze(job.request);
}

/** Of the response only the body may be changed. */
function exposeResponse(job) {
  if (job.response === null) return;
  const { body, ...fixed } = job.response;
  const response = { body };
  for (const [name, value] of Object.entries(deepFreeze(fixed))) {
    Object.defineProperty(response, name, { value, enumerable: true });
  }
  globalThis.response = Object.seal(response);
}

function asText(value, name) {
  if (typeof value === 'string') return value.toWellFormed();
  throw new TypeError(`${name} is ${kind(value)}; use a string`);
}

/** Headers and parameters: numbers and flags become text, what is null goes. */
function asTexts(values, name) {
  if (typeof values !== 'object' || values === null || Array.isArray(values)) {
    throw new TypeError(`${name} is ${kind(values)}; use an object of strings`);
  }
  const texts = {};
  for (const [key, value] of Object.entries(values)) {
    if (value === null || value === undefined) continue;
    const isPlain = typeof value === 'number' || typeof value === 'boolean';
    texts[key.toWellFormed()] = asText(isPlain ? String(value) : value, `${name}['${key}']`);
  }
  return texts;
}

function readRequest(request) {
  if (typeof request !== 'object' || request === null) {
    throw new TypeError(`request is ${kind(request)}; use an object`);
  }
  return {
    method: asText(request.method, 'request.method'),
    url: asText(request.url, 'request.url'),
    body: asText(request.body ?? '', 'request.body'),
    headers: asTexts(request.headers ?? {}, 'request.headers'),
    queryParameters: asTexts(request.queryParameters ?? {}, 'request.queryParameters'),
  };
}

function readBody(response) {
  return asText(response?.body ?? '', 'response.body');
}

module.exports = { exposeRequest, exposeResponse, readRequest, readBody };
