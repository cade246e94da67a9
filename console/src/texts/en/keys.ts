import { type Node, type Value, say } from '../message'

export const texts = {
  // DatabaseCredentials
  createCredential: 'Create credential',
  databaseCredentials: 'Database credentials',
  forMetabasePrismaPsqlAnd: "For Metabase, Prisma, psql and other programs that speak PostgreSQL's protocol.",
  noCredentialYet: 'No credential yet',
  eachProgramShouldHaveIts: 'Each program should have its own, so that you can revoke it.',
  name: 'Name',
  access: 'Access',
  owner: 'owner',
  readOnly: 'read only',
  userName: 'User name',
  lastUsed: 'Last used',
  expires: 'Expires',
  revokeCredentialName: (name: Value) => `Revoke credential ${name}`,
  revoke: 'Revoke',
  connect: 'Connect',
  withACredential: 'With a credential',
  thePsqlCommand: 'the psql command',
  withYourOwnAccountThrough: 'With your own account, through the API',
  theSocleCommand: 'the socle command',
  socleLoginUrlSocleDb: (origin: Value, project: Value) =>
    `socle login --url ${origin}
socle db psql --project ${project}`,
  credentialName: (name: Value) => `Credential ${name}`,
  password: 'Password',
  revokeCredential: 'Revoke credential',
  theSessionsOfEndWithin: (name: Node) =>
    say`The sessions of ${name} end within seconds, and it is refused from then on.`,
  askTheAdministratorForThe: 'Ask the administrator for the host and port: SOCLE_POSTGRES_ADDR of the server.',
  thisServerDoesNotListen:
    'This server does not listen for PostgreSQL clients yet. Start it with SOCLE_POSTGRES_ADDR, or connect through ' +
    'the API.',
  connectionsNeedTLSTheDatabase: 'Connections need TLS. The database is the name or the UUID of the project.',
  newDatabaseCredential: 'New database credential',
  theProgramThatUsesIt: 'The program that uses it, such as metabase.',
  bothPassRowLevelSecurity: 'Both pass row level security.',
  readOnlyReadsAllTables: 'read only: reads all tables',
  ownerEverythingThatSQLMay: 'owner: everything that SQL may do',
  emptyNever: 'Empty: never.',

  // jwk
  thisIsNotJSONPaste: 'This is not JSON. Paste the public key as a JSON Web Key.',
  theSetHasKeysPaste: (count: Value) => `The set has ${count} keys. Paste one of them.`,
  theKeyMustHaveKty: 'The key must have "kty": "EC" or "RSA".',
  thisIsAPrivateKey: 'This is a private key. Paste the public one: remove the member "d".',

  // JWTKeys
  jwtSecret: 'JWT secret',
  yourOwnServerSignsTokens:
    'Your own server signs tokens with it (HS256), to identify your users to the rows API. The claim role is anon, ' +
    'authenticated or service_role; policies can read all claims.',
  hideSecret: 'Hide secret',
  showSecret: 'Show secret',
  theJWTSecret: 'the JWT secret',
  addVerificationKey: 'Add verification key',
  verificationKeys: 'Verification keys',
  publicKeysOfAnotherIssuer:
    'Public keys of another issuer, such as your identity provider. Tokens that its private key signed are ' +
    'accepted (ES256 or RS256).',
  noVerificationKey: 'No verification key',
  addOneIfUsersSign: 'Add one if users sign in elsewhere.',
  keyID: 'Key ID',
  theKeyID: 'the key ID',
  algorithm: 'Algorithm',
  added: 'Added',
  deleteKeyKid: (kid: Value) => `Delete key ${kid}`,
  delete: 'Delete',
  deleteVerificationKey: 'Delete verification key',
  deleteKey: 'Delete key',
  tokensSignedByTheKey: (kid: Node) =>
    say`Tokens signed by the key ${kid} are refused within seconds. You can add the key again.`,
  newVerificationKey: 'New verification key',
  addKey: 'Add key',
  publicKey: 'Public key',
  ktyECCrvPThe256: '{"kty": "EC", "crv": "P-256", "x": "…", "y": "…"}',
  aJSONWebKeyAs: "A JSON Web Key, as in your provider's jwks.json. Without kid, the key's thumbprint is its ID.",
  keyOfEndUsersTokens: "Key of end users' tokens",
  rotateKey: 'Rotate key',
  socleSignsTheAccessTokens:
    "Socle signs the access tokens of this project's users with it. Rotate it if it may be known.",
  newTokensHaveKeyGeneration: (generation: Value) => `New tokens have key ${generation}.`,
  newAccessTokensHaveThe:
    'New access tokens have the new key within seconds. Tokens of the present key stay valid to their end. Tokens ' +
    'of older keys are refused: their users sign in again.',

  // ProjectKeys
  createKey: 'Create key',
  apiKeys: 'API keys',
  aPublishableKeyMayStand:
    'A publishable key may stand in a browser: it acts as anon. A secret key passes all policies and stays on ' +
    'servers.',
  noKeyYet: 'No key yet',
  anApplicationNeedsAKey: 'An application needs a key to read and write rows and files.',
  kind: 'Kind',
  beginsWith: 'Begins with',
  created: 'Created',
  revokeKeyName: (name: Value) => `Revoke key ${name}`,
  keyName: (name: Value) => `Key ${name}`,
  secretKey: 'Secret key',
  publishableKey: 'Publishable key',
  keepItOnServersWhoever: 'Keep it on servers. Whoever has it reads and changes everything.',
  revokeKey: 'Revoke key',
  programsWithTheKeyAre: (name: Node) =>
    say`Programs with the key ${name} are refused within seconds. A revoked key does not come back.`,
  newAPIKey: 'New API key',
  whereItIsUsedSuch: 'Where it is used, such as web or server.',
  publishableActsAsAnonMay: 'publishable: acts as anon, may be public',
  secretActsAsServiceRole: 'secret: acts as service_role, stays on servers',

  // S3Keys
  createS3Key: 'Create S3 key',
  s3Keys: 'S3 keys',
  rcloneAwsS3AndOther:
    "rclone, aws s3 and other programs reach the project's files with them. No policy restricts them: keep them on " +
    'servers.',
  theS3Endpoint: 'the S3 endpoint',
  endpointCopyable: (copyable: Node) => say`Endpoint ${copyable}`,
  noS3KeyYet: 'No S3 key yet',
  createOneForAProgram: 'Create one for a program that copies or backs up files.',
  accessKeyID: 'Access key ID',
  theAccessKeyID: 'the access key ID',
  revokeS3KeyName: (name: Value) => `Revoke S3 key ${name}`,
  s3KeyName: (name: Value) => `S3 key ${name}`,
  secretAccessKey: 'Secret access key',
  endpoint: 'Endpoint',
  revokeS3Key: 'Revoke S3 key',
  newS3Key: 'New S3 key',

  // VaultSecrets
  unnamedUuid: (uuid: Value) => `unnamed ${uuid}`,
  createSecret: 'Create secret',
  vault: 'Vault',
  secretsOfOtherServicesFor:
    'Secrets of other services for functions of your database, encrypted at rest. The console shows names only.',
  noSecretYet: 'No secret yet',
  keepTheKeyOfA: 'Keep the key of a payment or mail service here, instead of in a function’s text.',
  secretsInTheVault: 'Secrets in the vault',
  description: 'Description',
  changed: 'Changed',
  changeSecretS: (s: Value) => `Change secret ${s}`,
  change: 'Change',
  deleteSecretS: (s: Value) => `Delete secret ${s}`,
  readASecret: 'Read a secret',
  bySQLAsTheProjects:
    'By SQL as the project’s owner, such as in a function that is security definer. anon and authenticated cannot.',
  theStatement: 'the statement',
  deleteSecret: 'Delete secret',
  functionsThatReadFindNothing: (deleted: Node) =>
    say`Functions that read ${deleted} find nothing from now on. This cannot be undone.`,
  secret: 'Secret',
  newSecret: 'New secret',
  itIsNotShownAgain: 'It is not shown again.',
  emptyTheSecretStaysAs: 'Empty: the secret stays as it is.',
  nameIsInTheVault: (name: Value) => `${name} is in the vault.`,
  theSecretIsChanged: 'The secret is changed.',
  changeSecret: 'Change secret',
  saveChanges: 'Save changes',
  stripeKey: 'stripe_key',
  severalLinesReadableWhileYou: 'Several lines, readable while you type',
  forKeysInPEMAnd: 'For keys in PEM and other files.',

  // Keys
  tokens: 'Tokens',
  database: 'Database',
  keys: 'Keys',
  credentialsForProgramsThatUse: 'Credentials for programs that use this project, and secrets that its functions use.',
  kindsOfKeys: 'Kinds of keys',
}
