module.exports = { workers: 1, retries: 0, timeout: 0, expect: { timeout: 50_000 } };
