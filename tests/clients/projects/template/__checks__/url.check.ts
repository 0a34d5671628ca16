import { UrlAssertionBuilder, UrlMonitor } from 'checkly/constructs'

new UrlMonitor('shop-url', {
  name: 'Shop',
  activated: true,
  maxResponseTime: 10000,
  degradedResponseTime: 5000,
  request: {
    url: `${process.env.SHOP_URL}/`,
    followRedirects: true,
    assertions: [UrlAssertionBuilder.statusCode().equals(200)],
  },
})
