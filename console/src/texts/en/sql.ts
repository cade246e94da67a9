import { type Node, type Value, say } from '../message'

export const texts = {
  // statement
  newQuery: 'New query',

  // History
  history: 'History',
  noQueryYet: 'No query yet',
  theProjectKeepsTheLast: 'The project keeps the last 1,000 queries, without parameters.',
  durationMsMs: (durationMs: Value) => `, ${durationMs} ms`,
  rows: (rows: Value) => `, ${rows} rows`,
  wrote: 'wrote',
  open: 'Open',
  query: 'Query',

  // Chart
  aChartNeedsAColumn: 'A chart needs a column of numbers.',
  across: 'Across',
  up: 'Up',
  kind: 'Kind',
  bars: 'Bars',
  line: 'Line',
  theColumnHasNoNumbers: 'The column has no numbers to draw.',
  valuesOverAxis: (values: Value, axis: Value, count: Value) => `${values} over ${axis}, ${count} values`,

  // PlanTree
  plan: 'Plan',
  step: 'Step',
  ownTime: 'Own time',
  withStepsBelow: 'With steps below',
  rows2: 'Rows',
  planned: 'Planned',
  loops: 'Loops',
  planningPlanningMs: (planningMs: Value) => `Planning ${planningMs}. `,
  executionExecutionMs: (executionMs: Value) => `Execution ${executionMs}.`,
  cost: 'cost',
  time: 'time',
  shareOfThe: (share: Value, value: Value) => `${share} % of the ${value}`,
  theEstimateIsFarOff: 'The estimate is far off. Analyze the table.',
  timeMs: (time: Value) => `${time} ms`,

  // Outcome
  oneRow: '1 row',
  countRows: (count: Value) => `${count} rows`,
  ctrlEnterRunsTheSelection:
    'Ctrl+Enter runs the selection, or everything. Unless you allow writes, nothing can change.',
  canceledWhatHadNotFinished: 'Canceled. What had not finished is rolled back.',
  runningForS: (value: Value) => `Running for ${value} s…`,
  hint: (hint: Value) => `Hint: ${hint}`,
  allowWritesAboveToRun: 'Allow writes above to run this statement.',
  sqlstateStatement: (sqlstate: Value, statement: Value) => `SQLSTATE ${sqlstate}, statement ${statement}`,
  characterPosition: (position: Value) => `, character ${position}`,
  requestRequestId: (requestId: Value) => `, request ${requestId}`,
  requestIdNothingWasKept: (requestId: Node) => say`${requestId}. Nothing was kept.`,
  oneStatement: '1 statement',
  countStatements: (count: Value) => `${count} statements`,
  countInDurationMsMs: (count: Value, durationMs: Value) => `${count} in ${durationMs} ms`,
  asTheUser: ', as the user',
  as: (as: Value) => `, as ${as}`,
  readOnly: ', read only.',
  changesAreKept: ', changes are kept.',
  lineText: (line: Value, text: Value) => `Line ${line}: ${text}`,
  results: 'Results',
  leftOut: 'left out',
  moreWereLeftOutAdd: ', more were left out. Add a limit or a condition to see others.',
  showRows: 'Show rows',
  showChart: 'Show chart',
  exportResult: 'Export result',
  export: 'Export',
  csv: 'CSV',
  json: 'JSON',
  copyAsCSV: 'Copy as CSV',

  // Parameters
  parameters: 'Parameters',
  valueOfI: (i: Value) => `Value of $${i}`,
  null: 'null',

  // SavedQueries
  savedQueries: 'Saved queries',
  noSavedQueryYet: 'No saved query yet',
  allDevelopersOfTheProject: 'All developers of the project see them. Keep passwords out.',
  deleteSavedQuery: 'Delete saved query',
  deleteQuery: 'Delete query',
  nameIsDeleted: (name: Value) => `${name} is deleted.`,
  isLostForAllDevelopers: (name: Node) => say`${name} is lost for all developers of the project.`,
  nameIsSaved: (name: Value) => `${name} is saved.`,
  saveTheOpenQueryAs: 'Save the open query as',
  saveQuery: 'Save query',
  replaceQuery: 'Replace query',
  keptInThisBrowser: 'Kept in this browser',
  deleteName: (name: Value) => `Delete ${name}`,
  delete: 'Delete',
  textOfName: (name: Value) => `Text of ${name}`,

  // TabStrip
  openQueries: 'Open queries',
  closeText: (text: Value) => `Close ${text}`,

  // Toolbar
  allowWrites: 'Allow writes',
  runsTheStatementAndShows: 'Runs the statement and shows its plan with times',
  explain: 'Explain',
  cancel: 'Cancel',
  ctrlEnter: 'Ctrl+Enter',
  runSelection: 'Run selection',
  run: 'Run',

  // SQL
  sql: 'SQL',
  selectFrom: 'select * from …',
}
