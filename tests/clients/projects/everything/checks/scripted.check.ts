import { BrowserCheck, MultiStepCheck, PlaywrightCheck } from 'checkly/constructs'
import { second } from './groups.check'

new BrowserCheck('browser', {
  name: 'Browser',
  group: second,
  code: { entrypoint: '../scripts/browser.spec.ts' },
  playwrightConfig: { use: { baseURL: process.env.SHOP_URL } },
})

new MultiStepCheck('steps', {
  name: 'Steps',
  code: { entrypoint: '../scripts/steps.spec.ts' },
  environmentVariables: [{ key: 'SHOP_URL', value: process.env.SHOP_URL ?? '' }],
})

new PlaywrightCheck('suite', {
  name: 'Suite',
  playwrightConfigPath: '../suite/playwright.config.ts',
  pwProjects: ['chromium'],
  environmentVariables: [{ key: 'SHOP_URL', value: process.env.SHOP_URL ?? '' }],
})
