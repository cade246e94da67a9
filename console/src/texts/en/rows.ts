import { type Node, type Value, say } from '../message'

export const texts = {
  // edit
  writeBytesAsXAnd: 'Write bytes as \\x and pairs of hexadecimal digits, such as \\x00ff.',
  writeAValueOrSet: 'Write a value, or set it to null.',
  thisIsNotJSONYet: (error: Value) => `This is not JSON yet: ${error}.`,
  writeAnArraySuchAs: 'Write an array, such as ["a", "b"] or {a,b}.',
  writeANumberWithA: 'Write a number with a point before decimals, such as 1234.5.',

  // filters
  isEqualTo: 'is equal to',
  isNotEqualTo: 'is not equal to',
  isGreaterThan: 'is greater than',
  isAtLeast: 'is at least',
  isLessThan: 'is less than',
  isAtMost: 'is at most',
  doesNotContain: 'does not contain',
  matchesThePattern: 'matches the pattern',
  matchesTheExpression: 'matches the expression',
  isOneOf: 'is one of',
  isNull: 'is null',
  isNotNull: 'is not null',
  hasAllOf: 'has all of',

  // ReferenceInput
  searchInTable: (table: Value) => `Search in ${table}`,
  rowsInTable: (table: Value) => `Rows in ${table}`,
  noRowInHasThis: (table: Value) => `No row in ${table} has this text.`,
  searchingInTable: (table: Value) => `Searching in ${table}`,

  // ValueControl
  now: 'Now',

  // CellEditor
  editName: (name: Value) => `Edit ${name}`,
  setNull: 'Set null',
  useDefault: 'Use default',
  ctrlEnter: 'Ctrl Enter',
  enter: 'Enter',
  save: 'Save',
  kbdSavesKbd2CancelsKbd3: (kbd: Node, kbd2: Node, kbd3: Node) => say`${kbd} saves, ${kbd2} cancels, ${kbd3} goes on`,

  // display
  emptyText: 'empty text',

  // edits
  nameIsNowText: (name: Value, text: Value) => `${name} is now ${text}`,
  undo: 'Undo',
  nameWasNotSavedMessage: (name: Value, message: Value) => `${name} was not saved: ${message}`,
  edit: 'Edit',
  nameIsAgainText: (name: Value, text: Value) => `${name} is again ${text}`,
  theChangeStaysError: (error: Value) => `The change stays: ${error}`,

  // GridRow
  selectRowIndex: (index: Value) => `Select row ${index}`,
  openRowIndex: (index: Value) => `Open row ${index}`,
  openTheRowShiftEnter: 'Open the row (Shift Enter)',
  showTheRowOfTable: (table: Value) => `Show the row of ${table}`,
  showTheReferencedRowAlt: 'Show the referenced row (Alt Enter)',
  openTheAddressInA: 'Open the address in a new tab',

  // Grid
  selectTheLoadedRows: 'Select the loaded rows',

  // GridNote
  seeWhoMayDoWhat: 'See who may do what',
  thisCallerIsRefused: 'This caller is refused',
  openSettings: 'Open settings',
  addToTheExposedSchemas: (schema: Node, buttonLink: Node) =>
    say`Add ${schema} to the exposed schemas to see its rows here. ${buttonLink}`,
  noRowMeetsTheFilters: 'No row meets the filters',
  clearFilters: 'Clear filters',
  thisCallerSeesNoRow: 'This caller sees no row',
  noPolicyLetsThisCaller: 'No policy lets this caller read a row.',
  theTableHasNoRow: 'The table has no row for this caller.',
  noRowYet: 'No row yet',
  theQueryOfThisView: 'The query of this view returns no row.',
  insertARowImportA: 'Insert a row, import a file, or write rows with a key of the project.',

  // HeadCell
  refersToTable: (table: Value) => `refers to ${table}`,
  primaryKey: 'primary key',
  pk: 'PK ',
  columnName: (name: Value) => `Column ${name}`,

  // FilterBar
  filters: 'Filters',
  addCondition: 'Add condition',
  applyFilters: 'Apply filters',
  columnOfConditionNumber: (number: Value) => `Column of condition ${number}`,
  operatorOfConditionNumber: (number: Value) => `Operator of condition ${number}`,
  valueOfConditionNumber: (number: Value) => `Value of condition ${number}`,
  removeConditionNumber: (number: Value) => `Remove condition ${number}`,
  oneTwoThree: 'one, two, three',
  value: 'Value',

  // columnMenu
  sortAscending: 'Sort ascending',
  sortDescending: 'Sort descending',
  sortByThisAsWell: 'Sort by this as well',
  filterByThisColumn: 'Filter by this column',
  unpinColumn: 'Unpin column',
  pinColumn: 'Pin column',
  moveLeft: 'Move left',
  moveRight: 'Move right',
  hideColumn: 'Hide column',

  // Peek
  noRowHasThisKey: 'No row has this key',
  itMayBeHiddenFrom: 'It may be hidden from the caller that you see as.',
  openInTable: (table: Value) => `Open in ${table}`,

  // RowFields
  required: ' required',
  setEmptyText: 'Set empty text',
  showRowInTable: (table: Value) => `Show row in ${table}`,

  // InsertRow
  correctWrongFirst: (wrong: Value) => `Correct ${wrong} first.`,
  theRowIsInserted: 'The row is inserted',
  rowKeyIsInserted: (key: Value) => `Row ${key} is inserted`,
  insertARowIntoName: (name: Value) => `Insert a row into ${name}`,
  insertRow: 'Insert row',
  aRowWithTheseValues: (key: Value) =>
    `A row with these values is there${key}. The first attempt may have inserted it. `,
  insertAgainOnlyIfYou: 'Insert again only if you want another one.',

  // RowSheet
  thisRowIsNotThere: 'This row is not there',
  itWasDeletedItsKey: 'It was deleted, its key changed, or a policy hides it.',
  columnsSaved: (columns: Value) => `${columns} saved`,
  saveChanges: 'Save changes',

  // BulkEdit
  notInMissing: (missing: Value) => `, not in ${missing}`,
  nameChangedInChangedRows: (name: Value, changed: Value, missing: Value) =>
    `${name} changed in ${changed} rows${missing}`,
  changeCount: (count: Value) => `Change ${count}`,
  column: 'Column',
  theFormerValuesAreNot: 'The former values are not kept.',

  // SelectionBar
  countRows: (count: Value) => `${count} rows`,
  countCopiedAsFormat: (count: Value, format: Value) => `${count} copied as ${format}`,
  chosenRows: 'Chosen rows',
  countChosen: (count: Value) => `${count} chosen`,
  copyRows: 'Copy rows',
  copy: 'Copy ▾',
  sqlInsert: 'SQL insert',
  copyAsF: (f: Value) => `Copy as ${f}`,
  changeAColumn: 'Change a column',
  deleteRows: 'Delete rows',
  chooseNone: 'Choose none',
  notGoneAlreadyOrA: (missing: Value) => `, ${missing} not: gone already, or a policy forbids it`,
  countDeletedMissing: (count: Value, missing: Value) => `${count} deleted${missing}`,
  theRowsAreBack: 'The rows are back',
  theRowsAreNotBack: (error: Value) => `The rows are not back: ${error}`,
  deleteCount: (count: Value) => `Delete ${count}`,
  ofWillBeDeletedRows: (count: Value, name: Value) =>
    `${count} of ${name} will be deleted. Rows of other tables that refer to them with “on delete cascade” go too, and do not come back with Undo.`,

  // StatusBar
  oneRow: '1 row',
  aboutCount: (count: Value) => `about ${count}`,
  countingRows: 'Counting rows',
  rowsAreNotCounted: 'Rows are not counted',
  from: (from: Value) => `, from ${from}`,
  firstRows: 'First rows',
  rowsFrom: (from: Value) => `Rows from ${from}`,
  goToRow: 'Go to row',
  copyTheRequestForAs: (name: Value) => `Copy the request for ${name} as a curl command`,
  requestCopiedAsACurl: 'Request copied as a curl command',
  copyCurl: 'Copy curl',

  // ColumnsDialog
  columns: 'Columns',
  searchColumns: 'Search columns',
  showAll: 'Show all',
  hideAllButTheKey: 'Hide all but the key',
  reset: 'Reset',
  unpin: 'Unpin',
  pin: 'Pin',
  moveNameUp: (name: Value) => `Move ${name} up`,
  moveNameDown: (name: Value) => `Move ${name} down`,

  // Toolbar
  rows: 'Rows',
  filtersCount: (count: Value) => `Filters (${count})`,
  filter: 'Filter',
  columnsHidden: (hidden: Value) => `Columns (${hidden} hidden)`,
  liveOn: 'Live: on',
  live: 'Live',
  theExportEndedEarlyError: (error: Value) => `The export ended early: ${error}`,
  structure: 'Structure',
  import: 'Import',
  export: 'Export',
  export2: 'Export ▾',
  exportAsCSV: 'Export as CSV',
  exportAsTSV: 'Export as TSV',
  exportAsJSONLines: 'Export as JSON lines',

  // RowsView
  rowsOfName: (name: Value) => `Rows of ${name}`,
  view: 'view',
  rowSecurityOn: 'row security on',
  rowSecurityOff: 'row security off',
  youCanReadTheseRows: (refusal: Value) => `You can read these rows, not change them. ${refusal}`,
  thisViewCannotBeChanged: 'This view cannot be changed: it has no key, or its query does not allow it.',
  rowsCannotBeChangedHere: 'Rows cannot be changed here: the table has no primary key that tells one row from another.',
  valueCopied: 'Value copied',

  // Rows
  showAllTables: 'Show all tables',
}
