import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { change, names } from '../../components/change'
import { Confirm } from '../../components/Dialog'
import { CheckField } from '../../components/Field'
import { Menu } from '../../components/Menu'
import { Row } from '../../components/Page'
import { Empty, FailureNote, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { ConstraintForm } from './ConstraintForm'
import { onTable, reload, type TableRef } from './table'
import css from './Structure.module.css'

type Constraint = Schemas['Constraint']

export function Constraints({ table }: { table: TableRef }) {
  const [adds, setAdds] = useState(false)
  const [dropped, setDropped] = useState<Constraint | null>(null)
  const [failure, setFailure] = useState<unknown>(null)
  const query = useQuery({
    queryKey: ['tables', table.project, table.uuid, 'constraints'],
    queryFn: () => read(api.GET('/tables/{tableUUID}/constraints', { params: onTable(table) })),
  })
  const add = <Button needs="createConstraint" look="primary" onClick={() => setAdds(true)}>Add constraint</Button>

  async function validate(c: Constraint) {
    setFailure(null)
    try {
      await change(api.PUT('/tables/{tableUUID}/constraints/{constraintName}/validate', {
        params: { header: onTable(table).header, path: { tableUUID: table.uuid, constraintName: c.name } },
      }))
      toast(`All rows satisfy ${c.name}.`)
    } catch (error) {
      setFailure(error)
    }
    await reload(table.project)
  }

  return (
    <>
      <Row>{add}</Row>
      {failure !== null && <FailureNote error={failure} />}
      <Loaded query={query}>
        {({ content }) => content.length === 0 ? (
          <Empty title="No constraint yet" action={add}>A constraint refuses rows that must not exist.</Empty>
        ) : (
          <Table label={`Constraints of ${table.name}`} rows={content} keyOf={(c) => c.name} columns={[
            { title: 'Name', cell: (c) => <code className={css.wrap}>{c.name}</code> },
            { title: 'Definition', cell: (c) => <code className={css.expression}>{c.definition}</code> },
            { title: 'State', narrow: true, cell: (c) => <State constraint={c} /> },
            { title: 'Actions', align: 'right', cell: (c) => (
              <Menu label={`Actions of ${c.name}`} items={[
                ...(c.validated ? [] : [{ text: 'Validate', needs: 'validateConstraint' as const, onSelect: () => void validate(c) }]),
                { text: 'Drop constraint', danger: true, needs: 'deleteConstraint', onSelect: () => setDropped(c) },
              ]} />
            ) },
          ]} />
        )}
      </Loaded>
      {adds && <ConstraintForm table={table} onClose={() => setAdds(false)} />}
      {dropped && <DropConstraint table={table} constraint={dropped} onClose={() => setDropped(null)} />}
    </>
  )
}

function State({ constraint }: { constraint: Constraint }) {
  return (
    <span className={css.badges}>
      {constraint.validated ? <Badge tone="success">valid</Badge> : <Badge tone="warning">old rows unchecked</Badge>}
      {constraint.deferrable && (
        <Badge>{constraint.initiallyDeferred ? 'initially deferred' : 'deferrable'}</Badge>
      )}
    </span>
  )
}

const losses: Record<Constraint['type'], string> = {
  check: 'Rows that break the condition are accepted from now on.',
  unique: 'Equal values are accepted from now on, and the constraint\'s index is dropped.',
  primary: 'Rows have no key any more: the rows API and the console can no longer change a single row.',
  foreign: 'References to rows that do not exist are accepted from now on.',
  exclude: 'Rows that exclude each other are accepted from now on.',
}

function DropConstraint({ table, constraint, onClose }: {
  table: TableRef
  constraint: Constraint
  onClose: () => void
}) {
  const [cascade, setCascade] = useState(false)
  const isKey = constraint.type === 'primary' || constraint.type === 'unique'

  async function drop() {
    const { metadata } = await change(api.DELETE('/tables/{tableUUID}/constraints/{constraintName}', {
      params: {
        header: onTable(table).header,
        path: { tableUUID: table.uuid, constraintName: constraint.name },
        query: { cascade: cascade ? 'true' : 'false' },
      },
    }))
    await reload(table.project)
    if (metadata.deleted.length > 0) toast(`Also dropped: ${names(metadata.deleted)}.`)
  }

  return (
    <Confirm title={`Drop ${constraint.name}`} open onClose={onClose} action="Drop constraint" onSubmit={drop}>
      <div className={css.group}>
        <p>{losses[constraint.type]} No rows are lost.</p>
        {isKey && (
          <CheckField label="Drop foreign keys that reference it too" checked={cascade}
            onChange={(e) => setCascade(e.target.checked)} />
        )}
      </div>
    </Confirm>
  )
}
