import {
  EmailAlertChannel,
  IncidentioAlertChannel,
  MSTeamsAlertChannel,
  OpsgenieAlertChannel,
  PagerdutyAlertChannel,
  PhoneCallAlertChannel,
  SlackAlertChannel,
  SmsAlertChannel,
  TelegramAlertChannel,
  WebhookAlertChannel,
} from 'checkly/constructs'

export const mail = new EmailAlertChannel('mail', {
  address: 'oncall@shop.example',
  sendDegraded: true,
  sslExpiry: true,
  sslExpiryThreshold: 14,
})

export const webhook = new WebhookAlertChannel('webhook', {
  name: 'Deploy bot',
  url: new URL('https://hooks.shop.example/alerts'),
  method: 'POST',
  template: '{"title": "{{ALERT_TITLE}}"}',
  headers: [{ key: 'x-team', value: 'shop' }],
  queryParameters: [{ key: 'source', value: 'monitoring' }],
  webhookSecret: 'a-secret-of-the-webhook',
})

export const channels = [
  mail,
  webhook,
  new SlackAlertChannel('slack', {
    url: 'https://hooks.slack.com/services/T0/B0/x0x0x0',
    channel: '#ops',
  }),
  new OpsgenieAlertChannel('opsgenie', {
    name: 'Opsgenie',
    apiKey: 'opsgenie-key',
    region: 'EU',
    priority: 'P2',
  }),
  new PagerdutyAlertChannel('pagerduty', {
    account: 'shop',
    serviceName: 'Shop',
    serviceKey: 'a'.repeat(32),
  }),
  new SmsAlertChannel('sms', { name: 'On call', phoneNumber: '+4915112345678' }),
  new PhoneCallAlertChannel('call', { name: 'On call', phoneNumber: '+4915112345678' }),
  new IncidentioAlertChannel('incidentio', {
    name: 'incident.io',
    url: 'https://api.incident.example/v2/alert_events/checkly/1',
    apiKey: 'incident-key',
  }),
  new MSTeamsAlertChannel('teams', {
    name: 'Teams',
    url: 'https://teams.example/workflows/1',
  }),
  new TelegramAlertChannel('telegram', {
    name: 'Telegram',
    chatId: '-42',
    apiKey: '123:telegram-key',
  }),
]
