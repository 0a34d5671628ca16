import { MaintenanceWindow } from 'checkly/constructs'

new MaintenanceWindow('nightly', {
  name: 'Nightly work',
  tags: ['everything'],
  startsAt: new Date('2030-01-01T01:00:00Z'),
  endsAt: new Date('2030-01-01T02:00:00Z'),
  repeatInterval: 1,
  repeatUnit: 'DAY',
  repeatEndsAt: new Date('2030-02-01T00:00:00Z'),
})
