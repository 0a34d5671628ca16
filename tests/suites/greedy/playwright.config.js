module.exports = { workers: 1, retries: 0 };
