module.exports = { testDir: 'tests', timeout: 5000, workers: 1, retries: 0 };
