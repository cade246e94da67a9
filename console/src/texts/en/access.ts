import { type Node, type Value, say } from '../message'

export const texts = {
  // Frame
  socle: 'Socle',
  aBackendOnPostgreSQLDatabase: 'A backend on PostgreSQL: database, API, users and files in one program.',
  otherWaysIn: 'Other ways in',

  // Forgotten
  forgottenPassword: 'Forgotten password',
  weMailYouALink: 'We mail you a link that sets a new password. It works once, within an hour.',
  ifBelongsToAnAccount: (email: Node) =>
    say`If ${email} belongs to an account, a mail with a link is on its way. Without a mail server, the administrator finds it in the server's log.`,
  sendLink: 'Send link',
  eMailAddress: 'E-mail address',
  backToSignIn: 'Back to sign-in',
  sendToAnotherAddress: 'Send to another address',

  // invitation
  youAreInvited: 'You are invited',
  inviterInvitesYou: (inviter: Value) => `${inviter} invites you`,
  inviterToOrganizationNameAsRoleId: (inviter: Value, organizationName: Node, roleId: Value) =>
    say`${inviter} to ${organizationName} as ${roleId}.`,

  // SignIn
  signIn: 'Sign in',
  password: 'Password',
  codeOfYourSecondFactor: 'Code of your second factor',
  sixDigitsFromYourApp: 'Six digits from your app, or a recovery code.',
  useAnotherAccount: 'Use another account',
  createAnAccount: 'Create an account',
  youAreAMemberOf: (name: Value) => `You are a member of ${name}.`,

  // SignUp
  createAccount: 'Create account',
  userName: 'User name',
  threeToThe100LettersDigits: '3 to 100 letters, digits, _ or -.',
  atLeastEightCharacters: 'At least 8 characters.',
  setupToken: 'Setup token',
  aNewServerPrintsIt: 'A new server prints it when it starts. The account becomes its administrator.',
  askAnAdministratorForAn: 'Ask an administrator for an invitation, or enter the setup token of a new server.',
  iHaveAnAccount: 'I have an account',
}
