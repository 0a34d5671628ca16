import {
  AlertEscalationBuilder,
  CheckGroupV1,
  CheckGroupV2,
  Frequency,
  RetryStrategyBuilder,
} from 'checkly/constructs'
import { mail, webhook } from './channels.check'
import { dataCentre } from './locations.check'

export const first = new CheckGroupV1('first-group', {
  name: 'First group',
  activated: true,
  muted: false,
  concurrency: 3,
  frequency: Frequency.EVERY_30M,
  privateLocations: ['default', dataCentre],
  locations: [],
  tags: ['group'],
  environmentVariables: [{ key: 'TIER', value: 'gold', locked: true }],
  alertChannels: [mail],
  alertEscalationPolicy: AlertEscalationBuilder.runBasedEscalation(2),
  localSetupScript: 'console.log("set up")',
  localTearDownScript: 'console.log("torn down")',
  apiCheckDefaults: {
    url: process.env.SHOP_URL ?? '',
    headers: [{ key: 'x-shop', value: 'yes' }],
    queryParameters: [],
    basicAuth: { username: 'shop', password: 'keeper' },
    assertions: [],
  },
  retryStrategy: RetryStrategyBuilder.linearStrategy({ maxRetries: 1, baseBackoffSeconds: 1 }),
  runParallel: true,
})

export const second = new CheckGroupV2('second-group', {
  name: 'Second group',
  alertChannels: [webhook],
  alertEscalationPolicy: 'global',
})
