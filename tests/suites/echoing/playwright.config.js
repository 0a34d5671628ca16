module.exports = {
  workers: 1,
  retries: 0,
  timeout: 60_000,
  use: { trace: 'on', screenshot: 'on', video: 'off', serviceWorkers: 'allow' },
};
