import { CheckGroupV2, Frequency } from 'checkly/constructs'
import { emailChannel } from './alert-channels'

export const websiteGroup = new CheckGroupV2('website', {
  name: 'Website',
  activated: true,
  muted: false,
  frequency: Frequency.EVERY_15M,
  locations: ['us-east-1', 'eu-central-1'],
  tags: ['website'],
  environmentVariables: [{ key: 'SHOP_TIER', value: 'gold' }],
  alertChannels: [emailChannel],
})
