module.exports = { retries: 0, workers: 1, use: { video: 'off', screenshot: 'off' } };
