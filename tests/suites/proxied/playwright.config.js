// A proxy of the suite's own, which egress rules do not let it use.
module.exports = {
  workers: 1,
  retries: 0,
  timeout: 0,
  use: { proxy: process.env.OWN_PROXY ? { server: process.env.OWN_PROXY } : undefined },
};
