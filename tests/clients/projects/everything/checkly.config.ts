import { defineConfig } from 'checkly'

export default defineConfig({
  projectName: 'Everything',
  logicalId: 'everything',
  checks: {
    activated: true,
    frequency: 60,
    privateLocations: ['default'],
    tags: ['everything'],
    runtimeId: '2026.04',
    checkMatch: 'checks/**/*.check.ts',
  },
  cli: {
    privateRunLocation: 'default',
    reporters: ['list'],
  },
})
