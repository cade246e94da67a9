import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/structure'
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
  const add = <Button needs="createConstraint" look="primary" onClick={() => setAdds(true)}>{texts.addConstraint}</Button>

  async function validate(c: Constraint) {
    setFailure(null)
    try {
      await change(api.PUT('/tables/{tableUUID}/constraints/{constraintName}/validate', {
        params: { header: onTable(table).header, path: { tableUUID: table.uuid, constraintName: c.name } },
      }))
      toast(texts.allRowsSatisfyName(c.name))
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
          <Empty title={texts.noConstraintYet} action={add}>{texts.aConstraintRefusesRowsThat}</Empty>
        ) : (
          <Table label={texts.constraintsOfName(table.name)} rows={content} keyOf={(c) => c.name} columns={[
            { title: texts.name, cell: (c) => <code className={css.wrap}>{c.name}</code> },
            { title: texts.definition, cell: (c) => <code className={css.expression}>{c.definition}</code> },
            { title: texts.state, narrow: true, cell: (c) => <State constraint={c} /> },
            { title: texts.actions, align: 'right', cell: (c) => (
              <Menu label={texts.actionsOfName(c.name)} items={[
                ...(c.validated ? [] : [{ text: texts.validate, needs: 'validateConstraint' as const, onSelect: () => void validate(c) }]),
                { text: texts.dropConstraint, danger: true, needs: 'deleteConstraint', onSelect: () => setDropped(c) },
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
      {constraint.validated ? <Badge tone="success">{texts.valid}</Badge> : <Badge tone="warning">{texts.oldRowsUnchecked}</Badge>}
      {constraint.deferrable && (
        <Badge>{constraint.initiallyDeferred ? texts.initiallyDeferred : texts.deferrable2}</Badge>
      )}
    </span>
  )
}

const losses: Record<Constraint['type'], string> = {
  check: texts.rowsThatBreakTheCondition,
  unique: texts.equalValuesAreAcceptedFrom,
  primary: texts.rowsHaveNoKeyAny,
  foreign: texts.referencesToRowsThatDo,
  exclude: texts.rowsThatExcludeEachOther,
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
    if (metadata.deleted.length > 0) toast(texts.alsoDroppedDeleted2(names(metadata.deleted)))
  }

  return (
    <Confirm title={texts.dropName(constraint.name)} open onClose={onClose} action={texts.dropConstraint} onSubmit={drop}>
      <div className={css.group}>
        <p>{texts.lossesNoRowsAreLost(losses[constraint.type])}</p>
        {isKey && (
          <CheckField label={texts.dropForeignKeysThatReference} checked={cascade}
            onChange={(e) => setCascade(e.target.checked)} />
        )}
      </div>
    </Confirm>
  )
}
