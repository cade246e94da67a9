import { useState } from 'react'
import { Link } from '@tanstack/react-router'
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
  const add = <Button needs="createColumn" look="primary" onClick={() => setOpened({ act: 'add' })}>Add column</Button>

  return (
    <>
      <Row>{add}</Row>
      <Loaded query={query}>
        {({ content, metadata }) => (
          <>
            {content.length === 0 ? <Empty title="No column yet" action={add}>A column holds one value of each row.</Empty> : (
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
    <Table label={`Columns of ${table.name}`} rows={columns} keyOf={(c) => c.name} columns={[
      { title: 'Name', cell: (c) => (
        <>
          <code className={css.wrap}>{c.name}</code>
          {comments[c.name] && <p className={css.quiet}>{comments[c.name]}</p>}
        </>
      ) },
      { title: 'Type', cell: (c) => <code className={css.wrap}>{c.type}</code> },
      { title: 'Rules', narrow: true, cell: (c) => <Rules table={table} column={c} /> },
      { title: 'Default', narrow: true, cell: (c) => <code className={css.expression}>{c.defaultValue}</code> },
      { title: 'Actions', align: 'right', cell: (c) => (
        <Menu label={`Actions of ${c.name}`} items={[
          { text: 'Edit column', needs: 'updateColumn', onSelect: () => onOpen({ act: 'edit', column: c }) },
          { text: 'Drop column', danger: true, needs: 'deleteColumn', onSelect: () => onOpen({ act: 'drop', column: c }) },
        ]} />
      ) },
    ]} />
  )
}

function Rules({ table, column }: { table: TableRef; column: Column }) {
  return (
    <span className={css.badges}>
      {column.primary && <Badge tone="success">primary key</Badge>}
      {column.notNull && !column.primary && <Badge>not null</Badge>}
      {column.unique && !column.primary && <Badge>unique</Badge>}
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
    const deleted = metadata.deleted.length > 0 ? ` Also dropped: ${names(metadata.deleted)}.` : ''
    toast(`Dropped ${column.name}.${deleted}${mentionsOf(metadata)}`)
  }

  return (
    <Confirm title={`Drop ${column.name}`} open onClose={onClose} action="Drop column" name={column.name}
      onSubmit={drop}>
      <div className={css.group}>
        <p>
          The values of this column in all rows of {table.name} are lost, with the indexes and constraints that
          include it. Only a backup brings them back.
        </p>
        <CheckField label="Drop what depends on it too" checked={cascade}
          hint="Views, policies and other objects that use the column. Without this, they keep it."
          onChange={(e) => setCascade(e.target.checked)} />
        <SQLPreview change={dropColumn(table.name, column.name, cascade)} />
      </div>
    </Confirm>
  )
}
