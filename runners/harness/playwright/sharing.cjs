'use strict';
// Whether the worker may be in the runner's process: only where neither a script nor its result can
// tell. What is doubtful goes the usual way, which costs no more than time.

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');

const CODE = /\.[cm]?[jt]sx?$/;
const TOLD = 'arch|cwd|env|hrtime|memoryUsage|nextTick|pid|platform|ppid|stderr|stdout|uptime|version|versions';
const OTHERWISE = ['module', 'process']; // of these not all that is set counts
const LIBRARIES = Module.builtinModules.filter((one) => /^[a-z]\w+$/.test(one) && !OTHERWISE.includes(one));
const GLOBALS = '[A-Z][\\w$]*|set(?:Timeout|Interval|Immediate)|clear(?:Timeout|Interval|Immediate)|fetch|queueMicrotask';
const SET = '\\s*(?:[-+*/%&|^?]|\\*\\*|&&|\\|\\||\\?\\?)?=(?![=>])';

/** Where a script looks at its process, or changes what all in a process have in common. */
const DOUBTS = [
  new RegExp(`\\bprocess\\s*(?:\\?\\.|\\.|\\[)\\s*(?!(?:${TOLD})\\b)`),
  new RegExp(`\\bprocess\\.(?!env\\b)\\w+(?:\\.\\w+)*${SET}`),
  /(?:[=(,:?&|]\s*|\breturn\s+)process\b(?!\s*(?:\?\.|\.|\[))/,
  /(?<!\}\s*=\s*)\bprocess\.env\b(?!\s*(?:\?\.|\.|\[))/,
  /\b(?:TEST_WORKER_INDEX|TEST_PARALLEL_INDEX|globalThis|global|eval|Function|Reflect|__proto__)\b/,
  /\b(?:child_process|cluster|worker_threads|async_hooks|diagnostics_channel|inspector|v8|vm|syncBuiltinESMExports)\b/,
  /\b(?:node:(?:process|module)|from ['"](?:process|module)['"]|require\(['"](?:process|module)['"]\))/,
  /\brequire(?:\s*\.\s*(?:main|cache|extensions)\b|\s*\((?!\s*['"]))/,
  /\bdefinePropert|\bsetPrototypeOf\b|\.prototype\b|\bglobalAgent\b|\bsetGlobalDispatcher\b/,
  new RegExp(`\\bObject\\.assign\\(\\s*(?:[A-Z]\\w*|${LIBRARIES.join('|')})\\s*,`),
  new RegExp(`(?<![\\w$.])(?:[A-Z]\\w*|${LIBRARIES.join('|')})(?:\\.\\w+|\\[[^\\]]*\\])+${SET}`),
  new RegExp(`(?<![\\w$.]|\\b(?:const|let|var|type)\\s+)(?:${GLOBALS})${SET}`),
];
/** What outlives a worker that is no process; or what judges a run that went on after a failure. */
const LEFT = /\b(?:setInterval|listen|createServer|\w*Server|watch|watchFile|\w*[dD]egraded)\b/;

/** Of the files with names like `kind`; links are not followed. */
function textsIn(folder, kind = CODE) {
  const found = [];
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) found.push(...textsIn(file, kind));
    else if (entry.isFile() && kind.test(entry.name)) found.push(fs.readFileSync(file, 'utf8'));
  }
  return found;
}

/** Whether a run that goes well needs a second worker. */
function needsOneWorker(tests) {
  const kinds = new Set(tests.map((test) => test._workerHash));
  return kinds.size === 1 && !kinds.has(undefined) && tests.every((test) => test.retries === 0);
}

/** `texts`: of all files of the check's own. `tests`: as Playwright tells its reporters. */
function mayShare(texts, tests) {
  if (!needsOneWorker(tests)) return false;
  const doubts = tests.length === 1 ? DOUBTS : [...DOUBTS, LEFT];
  return !texts.some((text) => doubts.some((doubt) => doubt.test(text)));
}

module.exports = { mayShare, textsIn };
