import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { change } from '../../components/change'
import { Confirm } from '../../components/Dialog'
import { Menu } from '../../components/Menu'
import { Row } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { PolicyForm } from './PolicyForm'
import { RowSecurity } from './RowSecurity'
import { onTable, reload, type TableRef } from './table'
import css from './Structure.module.css'

type Policy = Schemas['Policy']
type Opened = { act: 'create' } | { act: 'edit' | 'delete'; policy: Policy } | null

/** Which rows each role may see and write. */
export function Policies({ table, rowLevelSecurity }: { table: TableRef; rowLevelSecurity: boolean }) {
  const [opened, setOpened] = useState<Opened>(null)
  const close = () => setOpened(null)
  const query = useQuery({
    queryKey: ['tables', table.project, table.uuid, 'policies'],
    queryFn: () => read(api.GET('/tables/{tableUUID}/policies', { params: onTable(table) })),
  })
  const create = (
    <Button needs="createPolicy" look="primary" onClick={() => setOpened({ act: 'create' })}>
      Create policy
    </Button>
  )

  return (
    <>
      <RowSecurity table={table} on={rowLevelSecurity} policies={query.data?.content.length} />
      <Row>{create}</Row>
      <Loaded query={query}>
        {({ content }) => content.length === 0 ? (
          <Empty title="No policy yet" action={create}>
            {rowLevelSecurity
              ? 'Without a policy, only the owner and the service role reach rows.'
              : 'Policies have no effect while row level security is off.'}
          </Empty>
        ) : <PolicyTable table={table} policies={content} onOpen={setOpened} />}
      </Loaded>
      {opened?.act === 'create' && <PolicyForm table={table} onClose={close} />}
      {opened?.act === 'edit' && <PolicyForm table={table} policy={opened.policy} onClose={close} />}
      {opened?.act === 'delete' && <DeletePolicy table={table} policy={opened.policy} onClose={close} />}
    </>
  )
}

function PolicyTable({ table, policies, onOpen }: {
  table: TableRef
  policies: Policy[]
  onOpen: (opened: Opened) => void
}) {
  return (
    <Table label={`Policies of ${table.name}`} rows={policies} keyOf={(p) => p.name} columns={[
      { title: 'Name', cell: (p) => (
        <>
          <span className={css.wrap}>{p.name}</span>
          <p className={css.badges}>
            <Badge>{p.command}</Badge>
            {!p.permissive && <Badge tone="warning">restrictive</Badge>}
          </p>
        </>
      ) },
      { title: 'Roles', narrow: true, cell: (p) => (
        <span className={css.badges}>{p.roles.map((role) => <Badge key={role}>{role}</Badge>)}</span>
      ) },
      { title: 'Condition', cell: (p) => (
        <>
          {p.using !== null && <p className={css.expression}>using ({p.using})</p>}
          {p.withCheck !== null && <p className={css.expression}>with check ({p.withCheck})</p>}
        </>
      ) },
      { title: 'Actions', align: 'right', cell: (p) => (
        <Menu label={`Actions of ${p.name}`} items={[
          { text: 'Edit policy', needs: 'updatePolicy', onSelect: () => onOpen({ act: 'edit', policy: p }) },
          { text: 'Delete policy', danger: true, needs: 'deletePolicy',
            onSelect: () => onOpen({ act: 'delete', policy: p }) },
        ]} />
      ) },
    ]} />
  )
}

function DeletePolicy({ table, policy, onClose }: { table: TableRef; policy: Policy; onClose: () => void }) {
  async function remove() {
    await change(api.DELETE('/tables/{tableUUID}/policies/{policyName}', {
      params: { header: onTable(table).header, path: { tableUUID: table.uuid, policyName: policy.name } },
    }))
    await reload(table.project)
  }

  return (
    <Confirm title={`Delete ${policy.name}`} open onClose={onClose} action="Delete policy" onSubmit={remove}>
      <p>
        {policy.permissive
          ? `${policy.roles.join(', ')} lose access to the rows that only this policy allows.`
          : `${policy.roles.join(', ')} get access to the rows that this policy alone withheld.`}
        {' '}No rows are lost.
      </p>
    </Confirm>
  )
}
