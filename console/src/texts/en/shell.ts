import { type Node, type Value, say } from '../message'

export const texts = {
  // insecure
  theBrowserDoesNotCopy: 'The browser does not copy on a page without https.',

  // NotFound
  thereIsNoPageHere: 'There is no page here',
  allProjects: 'All projects',
  theAddressMayBeMisspelled: 'The address may be misspelled, or the page has moved.',

  // navigation
  data: 'Data',
  application: 'Application',
  operation: 'Operation',
  tables: 'Tables',
  diagram: 'Diagram',
  sql: 'SQL',
  sqlFunctions: 'SQL functions',
  extensions: 'Extensions',
  migrations: 'Migrations',
  users: 'Users',
  edgeFunctions: 'Edge functions',
  realtime: 'Realtime',
  webhooks: 'Webhooks',
  schedules: 'Schedules',
  queues: 'Queues',
  files: 'Files',
  forms: 'Forms',
  mails: 'Mails',
  backups: 'Backups',
  requests: 'Requests',
  audit: 'Audit',
  advice: 'Advice',
  keys: 'Keys',
  settings: 'Settings',

  // Palette
  goTo: 'Go to',
  aScreenATableA: 'A screen, a table, a project',
  search: 'Search',
  results: 'Results',
  account: 'Account',

  // RequestPanel
  requestsOfThisPage: 'Requests of this page',
  noRequestYet: 'No request yet',
  everyActionHereIsA: 'Every action here is a request that you can repeat.',
  theRequestAsACurl: 'the request as a curl command',

  // SignInAgain
  yourSessionHasEnded: 'Your session has ended',
  leave: 'Leave',
  signIn: 'Sign in',
  signInToGoOn: 'Sign in to go on where you are. What you typed is still there; what was not saved yet, save again.',
  eMailAddress: 'E-mail address',
  password: 'Password',
  codeOfYourSecondFactor: 'Code of your second factor',

  // Shell
  skipToTheContent: 'Skip to the content',
  navigation: 'Navigation',
  socle: 'Socle',
  goToKbd: (kbd: Node) => say`Go to… ${kbd}`,
  accountOfUsername: (username: Value) => `Account of ${username}`,
  organization: 'Organization',
  administration: 'Administration',
  theme: (theme: Value) => `Theme: ${theme}`,
  signOut: 'Sign out',
  project: 'Project',
  home: 'Home',
  paused: 'paused',
  yourRoleInTheProject: 'Your role in the project. Actions that it does not allow say so.',

  // main
  indexHtmlHasNoRoot: 'index.html has no root',
}
