module.exports = { testDir: 'tests', timeout: 60000, workers: 1, retries: 0 };
