import { defineConfig, devices } from '@playwright/test';

export default defineConfig({
  testDir: './tests',
  reporter: './reporter.ts',
  projects: [
    { name: 'plain' },
    { name: 'phone', use: devices['Pixel 7'] },
    { name: 'named', use: { userAgent: 'Lamps/1' } },
  ],
});
