import { type Value } from '../message'

export const texts = {
  // entry
  theServer: 'the server',

  // OneEntry
  entrySeq: (seq: Value) => `Entry ${seq}`,
  theLogHasNoSuch: 'The log has no such entry',
  entriesThatAreOlderThan: 'Entries that are older than the log are gone; see which remain in the list.',
  number: 'Number',
  time: 'Time',
  operation: 'Operation',
  actor: 'Actor',
  address: 'Address',
  actorUUID: 'Actor UUID',
  bySessionOrToken: 'By session or token',
  client: 'Client',
  project: 'Project',
  organization: 'Organization',
  target: 'Target',
  path: 'Path',
  created: 'Created',
  fieldsOfTheBody: 'Fields of the body',
  received: 'Received',
  sent: 'Sent',
  request: 'Request',
  hash: 'Hash',

  // Audit
  data: 'Data',
  platform: 'Platform',
  changesOfTheProjectsOwn: "Changes of the project's own database, its files and forms. Backups contain this log.",
  changesAroundTheProjectSuch: 'Changes around the project, such as keys, backups and members.',
  audit: 'Audit',
  log: 'Log',
  nameAddressOrUUID: 'Name, address or UUID',
  createTable: 'createTable',
  from: 'From',
  to: 'To',
  noEntryMatches: 'No entry matches',
  noEntryYet: 'No entry yet',
  anOperationHasTheName: 'An operation has the name of the API, such as createTable. An actor has to exist.',
  everyChangeAppearsHere: 'Every change appears here.',
  auditLog: 'Audit log',
  fields: 'Fields',
  verifyThisLog: 'Verify this log',
  eachEntryHasAKeyed:
    'Each entry has a keyed hash of itself and the one before it. On the server, this command checks the chains of ' +
    'all logs:',
  command: 'command',
  socleAuditVerify: 'socle audit verify',
}
