import { type Value } from '../message'

export const texts = {
  // Advice
  showMore: (count: Value) => `Show ${count} more`,
  errors: 'Errors',
  dataThatIsProbablyPrivate: 'Data that is probably private can be reached.',
  warnings: 'Warnings',
  probablyNotWhatYouMeant: 'Probably not what you meant.',
  hints: 'Hints',
  performanceAndOrder: 'Performance and order.',
  advice: 'Advice',
  probableSecurityAndPerformanceProblems:
    "Probable security and performance problems, found in the database's catalog.",
  checkAgain: 'Check again',
  nothingToMend: 'Nothing to mend',
  rowLevelSecurityGrantsFunctions:
    'Row level security, grants, functions, keys and indexes look as they should. Check again after changes.',
  sqlForObject: (object: Value) => `SQL for ${object}`,
  openInSQL: 'Open in SQL',
  openTab: (tab: Value) => `Open ${tab}`,
}
