module.exports = () => ({ testDir: '.' });
