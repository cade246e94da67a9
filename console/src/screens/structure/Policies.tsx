import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/structure'
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
      {texts.createPolicy}
    </Button>
  )

  return (
    <>
      <RowSecurity table={table} on={rowLevelSecurity} policies={query.data?.content.length} />
      <Row>{create}</Row>
      <Loaded query={query}>
        {({ content }) => content.length === 0 ? (
          <Empty title={texts.noPolicyYet} action={create}>
            {rowLevelSecurity
              ? texts.withoutAPolicyOnlyThe
              : texts.policiesHaveNoEffectWhile}
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
    <Table label={texts.policiesOfName(table.name)} rows={policies} keyOf={(p) => p.name} columns={[
      { title: texts.name, cell: (p) => (
        <>
          <span className={css.wrap}>{p.name}</span>
          <p className={css.badges}>
            <Badge>{p.command}</Badge>
            {!p.permissive && <Badge tone="warning">{texts.restrictive2}</Badge>}
          </p>
        </>
      ) },
      { title: texts.roles, narrow: true, cell: (p) => (
        <span className={css.badges}>{p.roles.map((role) => <Badge key={role}>{role}</Badge>)}</span>
      ) },
      { title: texts.condition, cell: (p) => (
        <>
          {p.using !== null && <p className={css.expression}>{texts.using(p.using)}</p>}
          {p.withCheck !== null && <p className={css.expression}>{texts.withCheckWithCheck(p.withCheck)}</p>}
        </>
      ) },
      { title: texts.actions, align: 'right', cell: (p) => (
        <Menu label={texts.actionsOfName(p.name)} items={[
          { text: texts.editPolicy, needs: 'updatePolicy', onSelect: () => onOpen({ act: 'edit', policy: p }) },
          { text: texts.deletePolicy, danger: true, needs: 'deletePolicy',
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
    <Confirm title={texts.deleteName(policy.name)} open onClose={onClose} action={texts.deletePolicy} onSubmit={remove}>
      <p>
        {texts.rolesNoRowsAreLost(policy.permissive
          ? texts.loseAccessToTheRows(policy.roles.join(', '))
          : texts.getAccessToTheRows(policy.roles.join(', ')))}
      </p>
    </Confirm>
  )
}
