import { type Value } from '../message'

export const texts = {
  // Drawing
  tablesOfSchema: (schema: Value) => `Tables of ${schema}`,
  hiddenMore: (hidden: Value) => `+ ${hidden} more`,

  // Diagram
  diagram: 'Diagram',
  tablesAndTheForeignKeys: 'Tables and the foreign keys between them. • is a primary key, → a foreign key.',
  noTableYet: 'No table yet',
  openTables: 'Open tables',
  createTablesAndColumnsThat: 'Create tables, and columns that reference other tables. They appear here.',
  schema: 'Schema',
  columns: 'Columns',
  keysOnly: 'Keys only',
  allColumns: 'All columns',
  theFirstOfTablesAre: (mostTables: Value, count: Value) => `The first ${mostTables} of ${count} tables are shown.`,
  diagramArrowKeysMovePlus: 'Diagram: arrow keys move, plus and minus zoom, 0 shows all',
  zoomIn: 'Zoom in',
  zoomOut: 'Zoom out',
  showAll: 'Show all',
  exportSVG: 'Export SVG',
}
