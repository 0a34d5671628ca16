const { join } = require('node:path');

module.exports = { testDir: join(__dirname, 'tests') };
