const os = require('node:os');

/** The configuration is what a function makes of this machine. */
function configuration(cores) {
  return { testDir: 'tests', workers: Math.min(cores, 1), retries: 0 };
}

module.exports = configuration(os.cpus().length);
