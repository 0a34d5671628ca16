process.env.SERVICE_SECRET_CONFIG = 'made-by-the-' + 'configuration';
module.exports = { workers: 1, retries: 0 };
