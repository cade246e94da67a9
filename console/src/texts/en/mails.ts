import { type Node, say } from '../message'

export const texts = {
  // Mails
  newestFirst: 'Newest first',
  oldestFirst: 'Oldest first',
  recipient: 'Recipient',
  mails: 'Mails',
  messagesToYourUsersThat:
    'Messages to your users that did not leave: without a mail server they are kept here, with one those that it ' +
    'refused.',
  refresh: 'Refresh',
  order: 'Order',
  noMailWaits: 'No mail waits',
  confirmationsInvitationsSignInLinks: (code: Node) =>
    say`Confirmations, invitations, sign-in links and new passwords appear here while the server has no ${code}.`,
  subject: 'Subject',
  kind: 'Kind',
  state: 'State',
  created: 'Created',
  keptHere: 'kept here',
  refused: 'refused',
  message: 'Message',
  to: 'To',
  failure: 'Failure',
  mail: 'Mail',
  plainText: 'Plain text',
  htmlSource: 'HTML source',
  thisMessageHasNoText: 'This message has no text here',
}
