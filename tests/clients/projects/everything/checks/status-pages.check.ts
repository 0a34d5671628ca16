import {
  StatusPage,
  StatusPageService,
  StatusPageV3,
  StatusPageV3AutomationRule,
  StatusPageV3Component,
} from 'checkly/constructs'

export const shop = new StatusPageService('shop-service', { name: 'Shop' })

new StatusPage('cards', {
  name: 'Shop status',
  url: 'shop-cards',
  cards: [{ name: 'Customers', services: [shop] }],
  defaultTheme: 'DARK',
})

const page = new StatusPageV3('components', {
  name: 'Shop status, by component',
  url: 'shop-components',
  description: 'How the shop is.',
  supportLink: 'https://help.shop.example',
  footerText: 'The shop',
  themeColors: { light: { linkFontColor: '#112233' } },
})

const frontends = new StatusPageV3Component('frontends', {
  statusPage: page,
  type: 'GROUP',
  name: 'Frontends',
  displayOrder: 0,
  expandedByDefault: true,
})

const website = new StatusPageV3Component('website', {
  statusPage: page,
  name: 'Website',
  description: 'What customers see.',
  displayOrder: 0,
  parent: frontends,
  showHistoricalData: true,
})

new StatusPageV3AutomationRule('website-down', {
  statusPage: page,
  name: 'The website is down',
  enabled: true,
  firstUpdate: 'We are looking into it.',
  lastUpdate: 'It is over.',
  notifySubscribers: true,
  tags: ['everything'],
  coolDownMinutes: 5,
  components: [{ component: website, targetImpact: 'MAJOR_OUTAGE' }],
})
