import {
  AlertEscalationBuilder,
  ApiCheck,
  AssertionBuilder,
  DnsAssertionBuilder,
  DnsMonitor,
  Frequency,
  HeartbeatMonitor,
  IcmpAssertionBuilder,
  IcmpMonitor,
  RetryStrategyBuilder,
  TcpAssertionBuilder,
  TcpMonitor,
  UrlAssertionBuilder,
  UrlMonitor,
} from 'checkly/constructs'
import { channels } from './channels.check'
import { first, second } from './groups.check'
import { dataCentre } from './locations.check'
import { shop } from './status-pages.check'

const site = new URL(process.env.SHOP_URL ?? '')

new ApiCheck('api', {
  name: 'API',
  description: 'Lists books.',
  group: first,
  alertChannels: channels,
  alertEscalationPolicy: AlertEscalationBuilder.timeBasedEscalation(10, { amount: 2, interval: 5 }),
  degradedResponseTime: 8000,
  maxResponseTime: 20000,
  setupScript: { content: 'request.headers["x-setup"] = "done"' },
  environmentVariables: [{ key: 'SHELF', value: '1', secret: true }],
  retryStrategy: RetryStrategyBuilder.exponentialStrategy({
    baseBackoffSeconds: 1,
    maxRetries: 2,
    maxDurationSeconds: 60,
    sameRegion: true,
  }),
  triggerIncident: {
    service: shop,
    severity: 'MAJOR',
    name: 'The shop is down',
    description: 'The API does not list books.',
    notifySubscribers: false,
  },
  request: {
    url: `${site.origin}/api/books`,
    method: 'POST',
    ipFamily: 'IPv4',
    followRedirects: true,
    skipSSL: false,
    bodyType: 'JSON',
    body: '{"shelf": "{{SHELF}}"}',
    headers: [{ key: 'accept', value: 'application/json' }],
    queryParameters: [{ key: 'page', value: '1' }],
    basicAuth: { username: 'user', password: 'password' },
    assertions: [
      AssertionBuilder.statusCode().equals(200),
      AssertionBuilder.jsonBody('$[0].id').isNotNull(),
      AssertionBuilder.headers('content-type').contains('json'),
      AssertionBuilder.responseTime().lessThan(5000),
    ],
  },
})

new UrlMonitor('url', {
  name: 'URL',
  group: second,
  privateLocations: ['default', dataCentre],
  retryStrategy: RetryStrategyBuilder.singleRetry({ onlyOn: 'NETWORK_ERROR' }),
  request: {
    url: `${site.origin}/`,
    assertions: [UrlAssertionBuilder.statusCode().lessThan(300)],
  },
})

new TcpMonitor('tcp', {
  name: 'TCP',
  frequency: Frequency.EVERY_30S,
  retryStrategy: RetryStrategyBuilder.noRetries(),
  request: {
    hostname: site.hostname,
    port: Number(site.port),
    data: 'GET / HTTP/1.0\r\n\r\n',
    assertions: [
      TcpAssertionBuilder.responseTime().lessThan(1000),
      TcpAssertionBuilder.responseData().contains('HTTP/1'),
    ],
  },
})

new DnsMonitor('dns', {
  name: 'DNS',
  activated: false,
  request: {
    recordType: 'A',
    query: 'shop.example',
    nameServer: '127.0.0.1',
    port: 53,
    protocol: 'UDP',
    assertions: [
      DnsAssertionBuilder.responseCode().equals('NOERROR'),
      DnsAssertionBuilder.jsonAnswer('$[0].data').equals('192.0.2.1'),
    ],
  },
})

new IcmpMonitor('icmp', {
  name: 'ICMP',
  activated: false,
  degradedPacketLossThreshold: 10,
  maxPacketLossThreshold: 20,
  request: {
    hostname: '127.0.0.1',
    ipFamily: 'IPv4',
    pingCount: 3,
    assertions: [IcmpAssertionBuilder.latency('avg').lessThan(200)],
  },
})

new HeartbeatMonitor('heartbeat', {
  name: 'Nightly backup',
  period: 1,
  periodUnit: 'days',
  grace: 2,
  graceUnit: 'hours',
})
