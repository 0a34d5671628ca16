import { PrivateLocation } from 'checkly/constructs'

export const dataCentre = new PrivateLocation('data-centre', {
  name: 'Data centre',
  slugName: 'data-centre',
  icon: 'location',
  proxyUrl: 'http://proxy.shop.example:3128',
})
