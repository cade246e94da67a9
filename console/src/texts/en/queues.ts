import { type Node, type Value, say } from '../message'

export const texts = {
  // Queues
  createQueue: 'Create queue',
  queues: 'Queues',
  oneProgramSendsMessagesAnother:
    'One program sends messages, another reads them. What was read but not deleted comes back.',
  noQueueYet: 'No queue yet',
  createOneForWorkThat: 'Create one for work that should not hold up a request, such as mails.',
  name: 'Name',
  messages: 'Messages',
  visibleNow: 'Visible now',
  ageOfTheOldest: 'Age of the oldest',
  sentInAll: 'Sent in all',
  newQueue: 'New queue',
  mails: 'mails',
  lowerCaseLettersDigitsAnd: 'Lower-case letters, digits and underscores.',

  // Messages
  noMessageWaits: 'No message waits',
  nothingIsArchived: 'Nothing is archived',
  sendOneHereOrBy: 'Send one here, or by pgmq.send in SQL.',
  aWorkerArchivesWhatIt: 'A worker archives what it wants to keep, and what has failed too often.',
  number: 'Number',
  message: 'Message',
  reads: 'Reads',
  visible: 'Visible',
  archived: 'Archived',
  now: 'now',
  sent: 'Sent',
  loadMoreMessages: 'Load more messages',
  sentAgainAsMessage: (value: Value) => `Sent again as message ${value}.`,
  messageId: (id: Value) => `Message ${id}`,
  sendAgain: 'Send again',
  theMessageIsVisible: 'The message is visible.',
  makeVisibleNow: 'Make visible now',
  theMessageIsArchived: 'The message is archived.',
  archive: 'Archive',
  delete: 'Delete',
  theMessage: 'the message',
  headers: 'Headers',
  theHeaders: 'the headers',
  deleteMessage: 'Delete message',
  theMessageIsDeleted: 'The message is deleted.',
  messageIsLostArchiveIt: (id: Value) => `Message ${id} is lost. Archive it instead to keep it.`,

  // SendMessage
  sendAMessage: 'Send a message',
  sendMessage: 'Send message',
  messageIdIsSent: (id: Value) => `Message ${id} is sent.`,
  messageJSON: 'Message (JSON)',
  delayInSeconds: 'Delay in seconds',
  untilThenNobodyReadsIt: 'Until then nobody reads it.',
  notValidJSONError: (error: Value) => `Not valid JSON: ${error}`,

  // Queue
  allQueues: 'All queues',
  thereIsNoQueueWith: 'There is no queue with this name',
  itMayHaveBeenDropped: 'It may have been dropped meanwhile.',
  queue: 'Queue',
  purge: 'Purge',
  dropQueue: 'Drop queue',
  noMessage: 'no message',
  tables: 'Tables',
  purgeQueue: 'Purge queue',
  oneMessageIsDeleted: 'One message is deleted.',
  nMessagesAreDeleted: (n: Value) => `${n} messages are deleted.`,
  allMessagesInAreDeleted: (queue: Node) =>
    say`All messages in ${queue} are deleted, also those that a worker reads now. The archive stays.`,
  queueIsDropped: (queue: Value) => `${queue} is dropped.`,
  itsMessagesAndItsArchive: (queue: Node) =>
    say`${queue}, its messages and its archive are lost. Programs that send to it or read from it fail.`,
}
