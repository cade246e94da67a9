import { type Node, type Value, say } from '../message'

export const texts = {
  // Closure
  deleteAccount: 'Delete account',
  endsYourSessionsTokensAnd:
    'Ends your sessions, tokens and memberships. Organizations with other members or projects need another owner ' +
    'first.',
  yourAccountSessionsTokensAnd:
    'Your account, sessions, tokens and memberships are gone at once and cannot be brought back. Organizations ' +
    'without another member or project are deleted. What you created in projects stays.',
  yourPassword: 'Your password',
  codeOfYourSecondFactor: 'Code of your second factor',
  onlyIfYouHaveA: 'Only if you have a second factor.',

  // Profile
  userName: 'User name',
  threeToThe100LettersDigits: '3 to 100 letters, digits, _ or -.',
  aboutYou: 'About you',
  profile: 'Profile',
  eMailAddress: 'E-mail address',
  changeAddress: 'Change address',
  organization: 'Organization',
  yourFirstOrganizationCameWith: 'Your first organization came with the account.',
  openYourOrganization: 'Open your organization',
  changeEMailAddress: 'Change e-mail address',
  sendLink: 'Send link',
  openTheLinkInThe: (email: Value) => `Open the link in the mail to ${email} within a day.`,
  weMailALinkTo: 'We mail a link to the new address. Your address changes when you open it.',
  newAddress: 'New address',
  password: 'Password',
  aNewPasswordEndsAll: 'A new password ends all your other sessions.',
  changePassword: 'Change password',
  yourPasswordIsChangedAll: 'Your password is changed. All other sessions have ended.',
  newPassword: 'New password',
  atLeastEightCharacters: 'At least 8 characters.',

  // SecondFactor
  secondFactor: 'Second factor',
  aCodeFromAnApp: 'A code from an app on your phone, asked for at each sign-in.',
  on: 'on',
  off: 'off',
  notConfirmedYet: 'not confirmed yet',
  recoveryCodesUnusedRecoveryCodes: (recoveryCodes: Value) => `${recoveryCodes} unused recovery codes`,
  setUpSecondFactor: 'Set up second factor',
  removeSecondFactor: 'Remove second factor',
  recoveryCodes: 'Recovery codes',
  eachSignsYouInOnce: 'Each signs you in once, if you lose your phone. Keep them where you keep passwords.',
  continue: 'Continue',
  addItToYourApp: 'Add it to your app',
  turnOn: 'Turn on',
  enterThisSecretInYour: 'Enter this secret in your authenticator app, as a time-based code:',
  theSecret: 'the secret',
  orGiveTheAppThe: 'Or give the app the whole address:',
  theOtpauthAddress: 'the otpauth address',
  codeFromTheApp: 'Code from the app',
  sixDigitsTheSecondFactor: 'Six digits. The second factor counts from then on.',
  yourPasswordAloneSignsYou: 'Your password alone signs you in from then on. The recovery codes become useless.',
  code: 'Code',
  fromTheAppOrA: 'From the app, or a recovery code.',

  // browser
  unknownProgram: 'unknown program',

  // Sessions
  sessions: 'Sessions',
  whereYouAreSignedIn: 'Where you are signed in. End those that you do not know.',
  endAllOtherSessions: 'End all other sessions',
  program: 'Program',
  thisOne: 'this one',
  address: 'Address',
  lastUsed: 'Last used',
  began: 'Began',
  ends: 'Ends',
  signOut: 'Sign out',
  endSessionOfUserAgentAt: (userAgent: Value, address: Value) => `End session of ${userAgent} at ${address}`,
  end: 'End',
  endSession: 'End session',
  endSessions: 'End sessions',
  allYourDevicesAndPrograms:
    'All your devices and programs but this browser sign in again. Access tokens that you created stay valid.',
  userAgentAtAddressSignsIn: (userAgent: Value, address: Value) => `${userAgent} at ${address} signs in again.`,
  oneSessionHasEnded: '1 session has ended.',
  countSessionsHaveEnded: (count: Value) => `${count} sessions have ended.`,

  // Tokens
  createToken: 'Create token',
  accessTokens: 'Access tokens',
  aScriptActsAsYou:
    'A script acts as you with a token, up to the role of the token. It never reaches your password, address or ' +
    'sessions.',
  noTokenYet: 'No token yet',
  createOneForAScript: 'Create one for a script, a CI job or the command line.',
  name: 'Name',
  role: 'Role',
  beginsWith: 'Begins with',
  projects: 'Projects',
  expires: 'Expires',
  revokeTokenName: (name: Value) => `Revoke token ${name}`,
  revoke: 'Revoke',
  tokenName: (name: Value) => `Token ${name}`,
  token: 'Token',
  aFirstRequest: 'a first request',
  curlProjectsHAuthorizationBearer: (origin: Value, token: Value) =>
    `curl ${origin}/projects -H 'Authorization: Bearer ${token}'`,
  revokeToken: 'Revoke token',
  scriptsWithAreRefusedA: (name: Node) => say`Scripts with ${name} are refused. A revoked token does not come back.`,
  newAccessToken: 'New access token',
  whatUsesItSuchAs: 'What uses it, such as deploy script.',
  validFor: 'Valid for',
  aYear: 'a year',
  nDays: (n: Value) => `${n} days`,
  searchProjects: 'Search projects by name',
  noneChosenAllThatYou: 'None chosen: all that you can reach.',

  // Account
  passwordAndSecondFactor: 'Password and second factor',
  account: 'Account',
}
