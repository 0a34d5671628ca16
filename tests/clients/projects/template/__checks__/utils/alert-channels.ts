import { EmailAlertChannel } from 'checkly/constructs'

export const emailChannel = new EmailAlertChannel('on-call-mail', {
  address: 'oncall@shop.example',
  sendRecovery: true,
  sendFailure: true,
  sendDegraded: false,
})
