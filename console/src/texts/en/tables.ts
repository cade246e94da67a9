import { type Node, type Value, say } from '../message'

export const texts = {
  // ColumnEditor
  textOfColumnNumber: (text: Value, number: Value) => `${text} of column ${number}`,
  columnNumber: (number: Value) => `Column ${number}`,
  name: 'Name',
  type: 'Type',
  default: 'Default',
  removeColumnNumber: (number: Value) => `Remove column ${number}`,
  primaryKey: 'Primary key',
  notNull: 'Not null',
  unique: 'Unique',
  reference: 'Reference',
  refersToNoTable: 'Refers to no table',
  refersToFullName: (fullName: Value) => `Refers to ${fullName}`,
  labelColumn: (label: Value) => `${label}: column`,

  // CreateTable
  isCreatedOnlyTheOwner: (name: Value) => `${name} is created. Only the owner has access until you add policies`,
  newTable: 'New table',
  createTable: 'Create table',
  schema: 'Schema',
  comment: 'Comment',
  columns: 'Columns',
  addColumn: 'Add column',
  requestAndSQL: 'Request and SQL',
  theRequest: 'the request',
  postTablesXProjectStringify: (project: Value, stringify: Value) => `POST /tables
X-Project: ${project}

${stringify}`,
  theSQLThatDoesThe: 'the SQL that does the same',

  // TableDialogs
  nameIsNowName2Mentions: (name: Value, name2: Value, mentions: Value) => `${name} is now ${name2}${mentions}`,
  renameName: (name: Value) => `Rename ${name}`,
  renameTable: 'Rename table',
  lettersDigitsAndUnderscoresRequests:
    'Letters, digits and underscores. Requests and functions that use the former name must be adjusted.',
  adjustMentions: (mentions: Value) => `. Adjust ${mentions}`,
  nameIsCreated: (name: Value) => `${name} is created`,
  duplicateName: (name: Value) => `Duplicate ${name}`,
  duplicateTable: 'Duplicate table',
  nameOfTheCopy: 'Name of the copy',
  copyTheRows: 'Copy the rows',
  columnsDefaultsConstraintsIndexesAnd:
    'Columns, defaults, constraints, indexes and comments are copied. Policies, grants and triggers are not: the ' +
    'copy is closed to users of the project.',
  withGone: (gone: Value) => `, with ${gone}`,
  nameIsDeletedGone: (name: Value, gone: Value) => `${name} is deleted${gone}`,
  deleteName: (name: Value) => `Delete ${name}`,
  deleteTable: 'Delete table',
  aboutRowsAreLostWith: (rows: Value, count: Value) =>
    `About ${rows} rows (${count}) are lost, with the indexes, policies and triggers of the table`,
  key: 'key',
  keys: 'keys',
  andItsForeign: (foreign: Value, value: Value) => ` and its ${foreign} foreign ${value}`,
  onlyABackupCanBring: (foreign: Node) => say`${foreign}. Only a backup can bring them back.`,
  deleteWhatDependsOnIt: 'Delete what depends on it as well',
  viewsAndForeignKeysOf:
    'Views, and foreign keys of other tables. Otherwise the deletion is refused while there are any, and names ' +
    'them.',

  // TableMenu
  theExportEndedEarlyError: (error: Value) => `The export ended early: ${error}`,
  openRows: 'Open rows',
  openStructure: 'Open structure',
  importRows: 'Import rows',
  exportAsCSV: 'Export as CSV',
  exportForSpreadsheets: 'Export for spreadsheets',
  exportAsJSONLines: 'Export as JSON lines',
  rename: 'Rename',
  duplicate: 'Duplicate',
  delete: 'Delete',
  actionsOfName: (name: Value) => `Actions of ${name}`,

  // Tables
  importAFile: 'Import a file',
  tables: 'Tables',
  lookAtRowsChangeThem: 'Look at rows, change them, and shape the database.',
  searchByName: 'Search by name',
  allSchemas: 'All schemas',
  noTableHasThisName: 'No table has this name',
  clearSearch: 'Clear search',
  noTableYet: 'No table yet',
  createATableHereImport: 'Create a table here, import a CSV, Excel or JSON file, or run your own SQL.',
  rows: 'Rows',
  size: 'Size',
  access: 'Access',
  actions: 'Actions',
  view: 'view',
  unknown: 'unknown',
  rowSecurityOn: 'row security on',
  rowSecurityOff: 'row security off',
}
