import { defineConfig } from '@playwright/test';

// Below the ports that Linux gives to connections, which begin at 32,768.
const port = 12_000 + (process.pid % 20_000);
process.env.SHOP_PORT ??= String(port);

export default defineConfig({
  testDir: './tests',
  globalSetup: './global_setup.ts',
  use: { baseURL: `http://127.0.0.1:${process.env.SHOP_PORT}` },
  webServer: {
    command: 'node shop.mjs',
    env: { SHOP_PORT: process.env.SHOP_PORT },
    url: `http://127.0.0.1:${process.env.SHOP_PORT}/`,
  },
});
