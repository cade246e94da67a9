import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { texts } from '#texts/structure'
import { api, type Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { change, mentionsOf, names } from '../../components/change'
import { Confirm } from '../../components/Dialog'
import { CheckField } from '../../components/Field'
import { Menu } from '../../components/Menu'
import { Row } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { tablePath } from '../../components/tableList'
import { toast } from '../../components/Toast'
import { ColumnForm } from './ColumnForm'
import { dropColumn } from './ddl'
import { SQLPreview } from './SQLPreview'
import { onTable, reload, useColumns, type TableRef } from './table'
import css from './Structure.module.css'

type Column = Schemas['Column']
type Opened = { act: 'add' } | { act: 'edit' | 'drop'; column: Column } | null

export function Columns({ table }: { table: TableRef }) {
  const query = useColumns(table)
  const [opened, setOpened] = useState<Opened>(null)
  const add = <Button needs="createColumn" look="primary" onClick={() => setOpened({ act: 'add' })}>{texts.addColumn}</Button>

  return (
    <>
      <Row>{add}</Row>
      <Loaded query={query}>
        {({ content, metadata }) => (
          <>
            {content.length === 0 ? <Empty title={texts.noColumnYet} action={add}>{texts.aColumnHoldsOneValue}</Empty> : (
              <ColumnTable table={table} columns={content} comments={metadata.comments} onOpen={setOpened} />
            )}
            {opened?.act === 'add' && <ColumnForm table={table} onClose={() => setOpened(null)} />}
            {opened?.act === 'edit' && (
              <ColumnForm table={table} column={opened.column} comment={metadata.comments[opened.column.name] ?? ''}
                onClose={() => setOpened(null)} />
            )}
            {opened?.act === 'drop' && (
              <DropColumn table={table} column={opened.column} onClose={() => setOpened(null)} />
            )}
          </>
        )}
      </Loaded>
    </>
  )
}

function ColumnTable({ table, columns, comments, onOpen }: {
  table: TableRef
  columns: Column[]
  comments: Record<string, string>
  onOpen: (opened: Opened) => void
}) {
  return (
    <Table label={texts.columnsOfName(table.name)} rows={columns} keyOf={(c) => c.name} columns={[
      { title: texts.name, cell: (c) => (
        <>
          <code className={css.wrap}>{c.name}</code>
          {comments[c.name] && <p className={css.quiet}>{comments[c.name]}</p>}
        </>
      ) },
      { title: texts.type, cell: (c) => <code className={css.wrap}>{c.type}</code> },
      { title: texts.rules, narrow: true, cell: (c) => <Rules table={table} column={c} /> },
      { title: texts.default, narrow: true, cell: (c) => <code className={css.expression}>{c.defaultValue}</code> },
      { title: texts.actions, align: 'right', cell: (c) => (
        <Menu label={texts.actionsOfName(c.name)} items={[
          { text: texts.editColumn, needs: 'updateColumn', onSelect: () => onOpen({ act: 'edit', column: c }) },
          { text: texts.dropColumn, danger: true, needs: 'deleteColumn', onSelect: () => onOpen({ act: 'drop', column: c }) },
        ]} />
      ) },
    ]} />
  )
}

function Rules({ table, column }: { table: TableRef; column: Column }) {
  return (
    <span className={css.badges}>
      {column.primary && <Badge tone="success">{texts.primaryKey2}</Badge>}
      {column.notNull && !column.primary && <Badge>{texts.notNull2}</Badge>}
      {column.unique && !column.primary && <Badge>{texts.unique2}</Badge>}
      {column.referenceTable !== null && (
        <Link to={tablePath(table.project, column.referenceTable, '/structure') as string}>
          → {column.referenceTable}.{column.referenceColumn}
        </Link>
      )}
    </span>
  )
}

function DropColumn({ table, column, onClose }: { table: TableRef; column: Column; onClose: () => void }) {
  const [cascade, setCascade] = useState(false)

  async function drop() {
    const { metadata } = await change(api.DELETE('/tables/{tableUUID}/columns/{columnName}', {
      params: {
        header: onTable(table).header,
        path: { tableUUID: table.uuid, columnName: column.name },
        query: { cascade: cascade ? 'true' : 'false' },
      },
    }))
    await reload(table.project)
    const deleted = metadata.deleted.length > 0 ? texts.alsoDroppedDeleted(names(metadata.deleted)) : ''
    toast(texts.droppedNameDeletedMetadata(column.name, deleted, mentionsOf(metadata)))
  }

  return (
    <Confirm title={texts.dropName(column.name)} open onClose={onClose} action={texts.dropColumn} name={column.name}
      onSubmit={drop}>
      <div className={css.group}>
        <p>
          {texts.theValuesOfThisColumn(table.name)}
        </p>
        <CheckField label={texts.dropWhatDependsOnIt} checked={cascade}
          hint={texts.viewsPoliciesAndOtherObjects}
          onChange={(e) => setCascade(e.target.checked)} />
        <SQLPreview change={dropColumn(table.name, column.name, cascade)} />
      </div>
    </Confirm>
  )
}
