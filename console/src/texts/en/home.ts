import { type Node, type Value, say } from '../message'

export const texts = {
  // FailedRequests
  latestFailedRequests: 'Latest failed requests',
  allStatus: (status: Value) => `All ${status}`,
  noRequestFailed: 'No request failed',
  failuresOfTheLastDays: 'Failures of the last days appear here, with their reason.',

  // Figures
  figures: 'Figures',
  database: 'Database',
  databaseQuota: 'Database quota',
  files: 'Files',
  fileQuota: 'File quota',
  oneFile: '1 file',
  files2: (files: Value) => `${files} files`,
  lastBackup: 'Last backup',
  noneYet: 'None yet',
  createABackup: 'Create a backup',
  neverProven: 'Never proven',
  provenTime: (time: Node) => say`Proven ${time}`,
  advice: 'Advice',
  countFindings: (count: Value) => `${count} findings`,
  exposes: 'exposes',
  expose: 'expose',
  errorsData: (errors: Value, value: Value) => `${errors} ${value} data`,
  noDataExposed: 'No data exposed',
  nothingToDo: 'Nothing to do',
  underOne: 'under 1',
  morePercentOfLimit: (more: Node, percent: Value, limit: Value) => say`${more}${percent}% of ${limit}`,

  // FirstSteps
  firstSteps: 'First steps',
  threeStepsToTheFirst: 'Three steps to the first rows in your application.',
  createATable: 'Create a table',
  tables: 'Tables',
  sql: 'SQL',
  inByOrFromA: (link: Node, link2: Node) => say`In ${link}, by ${link2}, or from a CSV file.`,
  createAPublishableKey: 'Create a publishable key',
  readRows: 'Read rows',
  theKeyReadsWhatGrants: (code: Node) =>
    say`The key reads what grants and policies let ${code} read. A new table lets it read nothing until you grant it in the table's structure.`,
  client: 'Client',
  theChosenExample: (chosen: Value) => `the ${chosen} example`,
  databaseCredential: 'database credential',
  programsWithoutTheCommandLine: (link: Node) => say`Programs without the command line connect with a ${link}.`,
  done: ' ✓ done',
  askAnAdminOfThe: (placeholder: Node) =>
    say`Ask an admin of the organization for a key, and put it for ${placeholder}.`,
  theExamplesBelowHaveIt: 'The examples below have it. Copy them and run them.',
  putYourKeyForThe: (placeholder: Value) =>
    `Put your key for ${placeholder}. The server shows a key only once; create another one to fill the examples.`,
  applicationsSendItWithEach: 'Applications send it with each request. It is public and may stand in a browser.',
  createKeyForTheExamples: 'Create key for the examples',

  // LargestTables
  largestTables: 'Largest tables',
  noTableYet: 'No table yet',
  createOneOrImportA: 'Create one, or import a file as a table.',
  ofBlockReadsCameFrom: (cacheHitRatio: Value) => `${cacheHitRatio}% of block reads came from memory.`,

  // series
  refusedOrFailed: 'refused or failed',
  failed: 'failed',
  microsecondsS: (microseconds: Value) => `${microseconds} µs`,
  microsecondsMs: (microseconds: Value) => `${microseconds} ms`,

  // RequestsOverTime
  lastHour: 'Last hour',
  lastDay: 'Last day',
  lastWeek: 'Last week',
  requests: 'Requests',
  time: 'Time',
  noRequestInThisTime: 'No request in this time',
  whatYourApplicationAsksOf: 'What your application asks of this project is counted here.',
  requestsBeforeAreNotCounted: (time: Node) => say`Requests before ${time} are not counted: there are too many.`,
  requestsClientErrorsRefusedThe4xx: (requests: Value, clientErrors: Value) =>
    `${requests} requests, ${clientErrors} refused (4xx), `,
  serverErrorsFailedThe5xx: (serverErrors: Value) => `${serverErrors} failed (5xx)`,
  longestThe99thPercentileLongestMedian: (slowest: Value) => `Longest 99th percentile ${slowest}, longest median `,
  the99thPercentile: '99th percentile',
  median: 'median',

  // Home
  openTables: 'Open tables',
  runSQL: 'Run SQL',
  thisProjectIsPaused: 'This project is paused',
  itsDataAreKeptRequests:
    'Its data are kept. Requests to it are refused with the code project_paused until you resume it.',
  resumeProject: 'Resume project',
}
