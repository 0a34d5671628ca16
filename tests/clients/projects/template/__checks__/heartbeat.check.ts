import { HeartbeatMonitor } from 'checkly/constructs'

new HeartbeatMonitor('newsletter', {
  name: 'Send the weekly newsletter',
  activated: false,
  period: 1,
  periodUnit: 'hours',
  grace: 30,
  graceUnit: 'minutes',
})
