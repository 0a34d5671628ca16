import { ApiCheck, AssertionBuilder } from 'checkly/constructs'
import { websiteGroup } from './utils/website-group.check'

new ApiCheck('books-api', {
  name: 'Books API',
  group: websiteGroup,
  degradedResponseTime: 10000,
  maxResponseTime: 20000,
  request: {
    url: `${process.env.SHOP_URL}/api/books`,
    method: 'GET',
    followRedirects: true,
    skipSSL: false,
    assertions: [
      AssertionBuilder.statusCode().equals(200),
      AssertionBuilder.jsonBody('$[0].id').isNotNull(),
    ],
  },
})
