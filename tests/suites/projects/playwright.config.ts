import { defineConfig, devices } from '@playwright/test';

export default defineConfig({
  testDir: './tests',
  retries: 1,
  workers: 2,
  projects: [
    { name: 'login', testMatch: /login\.setup\.ts/ },
    { name: 'desktop', use: devices['Desktop Chrome'], dependencies: ['login'] },
    { name: 'phone', use: devices['Pixel 7'], dependencies: ['login'] },
    { name: 'fox', use: devices['Desktop Firefox'], retries: 0 },
  ],
});
