module.exports = { globalTimeout: 1500, workers: 1, retries: 0 };
