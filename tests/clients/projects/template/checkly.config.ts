import { defineConfig } from 'checkly'

export default defineConfig({
  projectName: 'Shop monitoring',
  logicalId: 'shop-monitoring',
  repoUrl: 'https://git.example/shop/monitoring',
  checks: {
    frequency: 10,
    locations: ['us-east-1', 'eu-central-1'],
    tags: ['mac'],
    runtimeId: '2025.04',
    checkMatch: '**/__checks__/**/*.check.ts',
    playwrightConfig: {
      timeout: 30000,
      use: {
        baseURL: process.env.SHOP_URL,
        viewport: { width: 1280, height: 720 },
      },
    },
    browserChecks: {
      testMatch: '**/__checks__/**/*.spec.ts',
    },
  },
  cli: {
    runLocation: 'eu-central-1',
    reporters: ['list'],
    retries: 0,
  },
})
