import { type Node, type Value, say } from '../message'

export const texts = {
  // AuditLog
  auditLog: 'Audit log',
  changesOfUsersOrganizationsProjects:
    'Changes of users, organizations, projects, keys, backups and settings, newest first.',
  action: 'Action',
  createProject: 'createProject',
  actor: 'Actor',
  uuidOfAUser: 'UUID of a user',
  from: 'From',
  to: 'To',
  noEntryMatches: 'No entry matches',
  removeAFilterToSee: 'Remove a filter to see more.',
  time: 'Time',
  detailsOfEntrySeqAction: (seq: Value, action: Value) => `Details of entry ${seq}: ${action}`,
  project: 'Project',
  client: 'Client',
  number: 'Number',
  actorUUID: 'Actor UUID',
  bySessionOrToken: 'By session or token',
  target: 'Target',
  created: 'Created',
  fields: 'Fields',
  organization: 'Organization',
  request: 'Request',
  hash: 'Hash',
  entrySeq: (seq: Value) => `Entry ${seq}`,

  // Environment
  environment: 'Environment',
  setWhereTheServerIs: 'Set where the server is started. Secrets are hidden.',
  onlyWhatDiffersFromThe: 'Only what differs from the default',
  variable: 'Variable',
  value: 'Value',
  set: 'set',
  default: 'Default',

  // Health
  health: 'Health',
  monitoringUsesHealthzAndReadyz: 'Monitoring uses /healthz and /readyz, which need no token.',
  checkNow: 'Check now',
  inAllStatusBadge: (statusBadge: Node) => say`In all: ${statusBadge}`,
  parts: 'Parts',
  part: 'Part',
  status: 'Status',
  detail: 'Detail',

  // InstanceSettings
  settings: 'Settings',
  theyTakeEffectOnEvery: 'They take effect on every server with the next request, and override the environment.',
  instanceSettings: 'Instance settings',
  setting: 'Setting',
  value2: (valueText: Value) => `Value: ${valueText}`,
  changed: 'changed',
  set2: 'Set',
  changeName: (name: Value) => `Change ${name}`,
  change: 'Change',
  resetName: (name: Value) => `Reset ${name}`,
  reset: 'Reset',
  minimumToMaximum: (minimum: Value, maximum: Value) => `${minimum} to ${maximum}. `,
  changeSetting: 'Change setting',
  on: 'On',
  defaultDefaultName: (defaultName: Value) => `Default: ${defaultName}.`,
  limitsDefaultDefaultName: (limits: Value, defaultName: Value) => `${limits}Default: ${defaultName}.`,

  // userActs
  suspendUser: 'Suspend user',
  isSignedOutEverywhereAnd: 'is signed out everywhere, and their tokens are refused, until you activate them again.',
  activateUser: 'Activate user',
  canSignInAgain: 'can sign in again.',
  makeAdministrator: 'Make administrator',
  willReachAllOrganizationsAnd: 'will reach all organizations and projects, and these pages.',
  removeAdministrator: 'Remove administrator',
  willReachOnlyTheirOwn: 'will reach only their own organizations, and not these pages.',
  removeSecondFactor: 'Remove second factor',
  signsInWithThePassword:
    'signs in with the password alone from then on. Their sessions end and a mail tells them. Verify first who ' +
    'asks for it.',
  deleteUser: 'Delete user',
  losesTheAccountSessionsTokens:
    'loses the account, sessions, tokens and memberships. This cannot be undone. What they created in projects ' +
    'stays.',

  // Users
  users: 'Users',
  everybodyWithAnAccountOn: 'Everybody with an account on this instance.',
  searchByNameOrAddress: 'Search by name or address',
  all: 'all',
  active: 'active',
  suspended: 'suspended',
  noUserMatches: 'No user matches',
  searchForAPartOf: 'Search for a part of a name or an address.',
  userName: 'User name',
  eMailAddress: 'E-mail address',
  administrator: 'administrator',
  actionsForUsername: (username: Value) => `Actions for ${username}`,

  // Admin
  yourRoleDoesNotAllow: 'Your role does not allow this',
  administratorsOfTheInstanceSee: 'Administrators of the instance see this page.',
  administration: 'Administration',
  thisInstanceItsUsersSettings: 'This instance: its users, settings and parts.',
}
