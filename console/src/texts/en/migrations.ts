import { type Node, type Value, say } from '../message'

export const texts = {
  // ApplyDialog
  recordMigrationsAsApplied: 'Record migrations as applied',
  applyMigrations: 'Apply migrations',
  recordMigrations: 'Record migrations',
  recordedAsAppliedWithoutRunning: (pending: Value) =>
    `${pending}: recorded as applied without running. Do this if the database has the changes already.`,
  runInOrderEachIn: (pending: Value) =>
    `${pending}: run in order, each in its own transaction, until one fails. What ran before a failure stays applied.`,
  files: (files: Value) => `${files} files`,
  sqlstateStatement: (sqlstate: Value, statement: Value) => `SQLSTATE ${sqlstate}, statement ${statement}`,
  characterPosition: (position: Value) => `, character ${position}`,
  appliedBeforeItApplied: (applied: Value) => `Applied before it: ${applied}.`,
  countAppliedAlreadyAppliedBefore: (count: Value, alreadyApplied: Value) =>
    `${count} applied, ${alreadyApplied} before`,
  durationMsMs: (durationMs: Value) => `, ${durationMs} ms`,
  leftOutOrChanged: 'Left out or changed',
  versionLineText: (version: Node, line: Value, text: Value) => say`${version}, line ${line}: ${text}`,
  moreNotesAreNotShown: (omittedNotes: Value) => `${omittedNotes} more notes are not shown.`,

  // Difference
  schemaOfTheProject: 'Schema of the project',
  whatTheProjectHasBeyond: 'What the project has beyond the files',
  theFilesRunInAn:
    'The files run in an empty scratch database, which is compared with the project. The project does not change.',
  noDifference: 'No difference',
  theProjectIsWhatThe: 'The project is what the files make of an empty database.',
  downloadAsMigration: 'Download as migration',
  sqlI: (i: Value) => `SQL ${i}`,
  toBeWrittenByHand: 'To be written by hand',

  // FileList
  changedAfterItWasApplied: 'changed after it was applied',
  stoppedHalfwayRunsAgain: 'stopped halfway: runs again',
  olderThanAnAppliedOne: 'older than an applied one',
  versionIsApplied: 'version is applied',
  files2: 'Files',
  version: 'Version',
  name: 'Name',
  state: 'State',
  actions: 'Actions',
  showSQLOfVersion: (version: Value) => `Show SQL of ${version}`,
  showSQL: 'Show SQL',
  removeVersionFromTheList: (version: Value) => `Remove ${version} from the list`,
  sql: 'SQL',

  // Paste
  pasteAMigration: 'Paste a migration',
  addToList: 'Add to list',
  digitsSuchAsTheTime: 'Digits, such as the time.',
  addBooks: 'add_books',
  oneTransactionWithTheFirst:
    'One transaction. With the first line -- socle: no-transaction each statement is its own.',

  // Apply
  chooseFiles: 'Choose files',
  pasteSQL: 'Paste SQL',
  showSchemaAsSQL: 'Show schema as SQL',
  compareWithProject: 'Compare with project',
  leftOutSinceTheirNames: (skipped: Value) => `Left out, since their names do not begin with a version: ${skipped}`,
  noFileChosen: 'No file chosen',
  chooseTheFilesOfYour:
    'Choose the files of your migrations folder. Files that the project has are recognized and left alone.',
  applyFilesThatAreOlder: 'Apply files that are older than applied ones',
  otherwiseTheRequestIsRefused: 'Otherwise the request is refused.',
  recordAsApplied: 'Record as applied',
  clearList: 'Clear list',
  nothingToApply: 'Nothing to apply',
  applyPendingMigrations: (pending: Value) => `Apply ${pending} migrations`,

  // Migrations
  migrations: 'Migrations',
  sqlThatBroughtTheDatabase: 'SQL that brought the database to its present form, in order.',
  applied: 'Applied',
  noMigrationYet: 'No migration yet',
  aMigrationIsAFile:
    'A migration is a file such as 20261127093000_add_books.sql. The project records which ones it has.',
  appliedMigrations: 'Applied migrations',
  checksum: 'Checksum',
  unfinishedItRunsAgain: 'unfinished: it runs again',
  appliedInDurationMsMs: (durationMs: Value) => `applied in ${durationMs} ms`,
}
