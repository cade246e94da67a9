import { type Node, type Value, say } from '../message'

export const texts = {
  // Roles
  runsTheWholeInstance: 'runs the whole instance',
  everythingAlsoTransferAndDelete: 'everything, also transfer and delete',
  membersKeysAndSettings: 'members, keys and settings',
  readsAndChangesData: 'reads and changes data',
  readsOnly: 'reads only',
  roleId: (id: Value) => `role ${id}`,
  role: 'Role',

  // rights
  needsTheRoleYouAre: (needed: Value, held: Value) => `Needs the role ${needed}. You are ${held}.`,

  // States
  requestRequestId: (requestId: Value) => `Request ${requestId}`,
  yourRoleDoesNotAllow: 'Your role does not allow this',
  thisCouldNotBeLoaded: 'This could not be loaded',
  tryAgain: 'Try again',
  loading: 'Loading',

  // Guarded
  adminsOfTheOrganizationCan: (refusal: Value) => `${refusal} Admins of the organization can give you another role.`,

  // Dialog
  close: 'Close',
  cancel: 'Cancel',
  typeNameToConfirm: (name: Value) => `Type ${name} to confirm`,

  // Bits
  never: 'never',
  hide: 'Hide',
  show: 'Show',
  copyLabel: (label: Value) => `Copy ${label}`,
  copied: 'Copied',
  copy: 'Copy',

  // specs
  mustBeAWholeNumber: (label: Value) => `${label} must be a whole number.`,
  mustBeASizeSuch: (label: Value) => `${label} must be a size, such as 10 GiB.`,

  // SettingsForm
  titleSaved: (title: Value) => `${title}: saved.`,
  saveChanges: 'Save changes',
  discardChanges: 'Discard changes',
  setTypeANewOne: 'Set. Type a new one to replace it',
  notSet: 'Not set',

  // ShownOnce
  copyItNowItIs: 'Copy it now. It is not shown again.',
  iHaveCopiedIt: 'I have copied it',

  // Table
  actions: 'Actions',
  pages: 'Pages',
  previous: 'Previous',
  pageOfPagesTotalIn: (page: Value, pages: Value, total: Value) => `Page ${page} of ${pages}, ${total} in all`,
  next: 'Next',

  // NewProject
  newProject: 'New project',
  createProject: 'Create project',
  name: 'Name',
  description: 'Description',

  // ProjectList
  noProjectHasThisName: 'No project has this name',
  noProjectYet: 'No project yet',
  aProjectTakesASecond: 'A project takes a second to create and nothing while it is idle.',
  projects: 'Projects',
  status: 'Status',
  created: 'Created',
  noDeletedProjectHasThis: 'No deleted project has this name',
  noDeletedProject: 'No deleted project',
  aDeletedProjectStaysHere:
    'A deleted project stays here for a week, unless the instance has another time. Then it is purged.',
  deletedProjects: 'Deleted projects',
  deleted: 'Deleted',
  restoreProjectName: (name: Value) => `Restore project ${name}`,
  restore: 'Restore',
  nameIsBack: (name: Value) => `${name} is back.`,
  restoreProject: 'Restore project',
  becomesActiveAgainWithIts: (name: Node) =>
    say`${name} becomes active again with its database, files, users, keys and backups, as it was when it was deleted. If another project has taken its name meanwhile, rename that one first.`,

  // change
  itIsUsedByDependents: (dependents: Value) => `It is used by ${dependents}.`,
  valuesThatDoNotConvert: (failing: Value) => `Values that do not convert: ${failing}.`,
  oneIsInTheRow: (stringify: Value) => `One is in the row ${stringify}.`,
  adjustWhatMentionsItMentions: (mentions: Value) => ` Adjust what mentions it: ${mentions}.`,

  // SeeAs
  runAs: 'Run as',
  seeAs: 'See as',
  runAsTheOwner: 'Run as the owner',
  seeAsTheOwner: 'See as the owner',
  runAsAnon: 'Run as anon',
  seeAsAnon: 'See as anon',
  runAsAuthenticated: 'Run as authenticated',
  runAsName: (name: Value) => `Run as ${name}`,
  seeAsName: (name: Value) => `See as ${name}`,
  runAsAUser: 'Run as a user…',
  seeAsAUser: 'See as a user…',
  runAsAnotherUser: 'Run as another user…',
  seeAsAnotherUser: 'See as another user…',
  runAsAUser2: 'Run as a user',
  seeAsAUser2: 'See as a user',
  statementsHaveThisUsersRole:
    'Statements have this user’s role and claims: grants and policies decide what they read and change.',
  theRowsAreReadWith: 'The rows are read with this user’s claims: what policies allow is shown, the rest is not.',
  searchByAddress: 'Search by address',
  noUserYet: 'No user yet',
  noUserHasThisAddress: 'No user has this address',
  usersSignUpInYour: 'Users sign up in your application, or you create them under Users.',
  anonymousUuid: (uuid: Value) => `Anonymous ${uuid}`,

  // ImportOptions
  leaveOutRowsThatCannot: 'Leave out rows that cannot be stored',
  otherwiseOneSuchRowEnds: 'Otherwise one such row ends the import, and nothing is stored.',
  rowsWhoseKeyExistsAlready: 'Rows whose key exists already',
  areRejected: 'Are rejected',
  areReplacedByThoseOf: 'Are replaced by those of the file',
  stayAsTheyAre: 'Stay as they are',
  columnsOfThatKey: 'Columns of that key',
  thePrimaryKey: 'The primary key',
  howTheFileIsRead: 'How the file is read',
  format: 'Format',
  byItsContentType: 'By its content type',
  delimiter: 'Delimiter',
  byTheHeader: 'By the header',
  encoding: 'Encoding',
  utfEight: 'UTF-8',
  textThatMeansNull: 'Text that means null',
  nothing: 'Nothing',
  sheet: 'Sheet',
  theFirst: 'The first',
  numbers: 'Numbers',
  byTheValues: 'By the values',
  lineOfTheColumnNames: 'Line of the column names',
  aLineNamesTheColumns: 'A line names the columns',

  // importFile
  theImportWasCanceled: 'The import was canceled.',

  // ImportReport
  rejectedDoNot: (rejected: Value) => `, ${rejected} do not`,
  rowsFitRejected: (rows: Value, rejected: Node) => say`${rows} rows fit${rejected}`,
  nothingIsStoredYet: ' Nothing is stored yet.',
  columns: 'Columns',
  inTheFile: 'In the file',
  column: 'Column',
  type: 'Type',
  notes: 'Notes',
  rejectedRows: 'Rejected rows',
  line: 'Line',
  whyItIsRejected: 'Why it is rejected',
  countMoreLinesAreRejected: (count: Value) => `${count} more lines are rejected.`,

  // ImportDialog
  tryingTheFile: 'Trying the file',
  importing: 'Importing',
  rejectedLeftOut: (rejected: Value) => `, ${rejected} left out`,
  rowsImportedIntoTableLeft: (rows: Value, table: Value, left: Value) => `${rows} rows imported into ${table}${left}`,
  importAFileAsA: 'Import a file as a table',
  importRowsIntoTable: (table: Value) => `Import rows into ${table}`,
  nameOfTheTable: 'Name of the table',
  schema: 'Schema',
  rowsThatCannotBeStored:
    'Rows that cannot be stored end the import. Correct the file, or choose “Leave out rows that cannot be stored”.',
  textSending: (text: Value) => `${text}: sending`,
  theDatabaseReadsTheRows: (text: Value) => `${text}: the database reads the rows`,
  cancelImport: 'Cancel import',
  tryFile: 'Try file',
  importRows: (rows: Value) => `Import ${rows} rows`,
  dropACSVTSVExcel: 'Drop a CSV, TSV, Excel (XLSX) or JSON file here, or choose one.',

  // FollowingBadge
  notFollowing: 'not following',
  connecting: 'connecting',
  following: 'following',
  interrupted: 'interrupted',

  // transfer
  theUploadWasCanceled: 'The upload was canceled.',

  // ResultGrid
  result: 'Result',
  value: 'value',
  null: 'null',

  // MailFrame
  theMailAsItsRecipient: 'The mail as its recipient sees it',
}
