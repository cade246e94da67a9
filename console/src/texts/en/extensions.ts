import { type Node, type Value, say } from '../message'

export const texts = {
  // Extensions
  extensions: 'Extensions',
  typesFunctionsAndOperatorsThat: 'Types, functions and operators that the project can add to PostgreSQL.',
  searchByNameOrDescription: 'Search by name or description',
  noExtensionMatches: 'No extension matches',
  onlyAnOperatorInstallsOther: 'Only an operator installs other extensions.',
  name: 'Name',
  description: 'Description',
  state: 'State',
  installedVersionInSchema: (installedVersion: Node, schema: Node) => say`${installedVersion} in ${schema}`,
  availableVersion: (version: Node) => say`available${version}`,
  actions: 'Actions',
  removeName: (name: Value) => `Remove ${name}`,
  remove: 'Remove',
  installName: (name: Value) => `Install ${name}`,
  install: 'Install',
  installExtension: 'Install extension',
  itIsInstalledIntoThe: (code: Node) =>
    say`It is installed into the schema ${code} with what it requires. Its types and functions need no prefix. It can be removed as long as nothing uses it.`,
  removeExtension: 'Remove extension',
  theTypesFunctionsAndOperators: (name: Value) =>
    `The types, functions and operators of ${name} are removed. If columns, indexes or functions use them, the extension stays, and you see which.`,
}
