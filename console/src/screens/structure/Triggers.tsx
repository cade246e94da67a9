import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { change } from '../../components/change'
import { Confirm } from '../../components/Dialog'
import { Menu } from '../../components/Menu'
import { Row } from '../../components/Page'
import { Empty, FailureNote, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { onTable, reload, type TableRef } from './table'
import { TriggerForm } from './TriggerForm'
import css from './Structure.module.css'

type Trigger = Schemas['Trigger']

export function Triggers({ table }: { table: TableRef }) {
  const [adds, setAdds] = useState(false)
  const [dropped, setDropped] = useState<Trigger | null>(null)
  const [failure, setFailure] = useState<unknown>(null)
  const query = useQuery({
    queryKey: ['tables', table.project, table.uuid, 'triggers'],
    queryFn: () => read(api.GET('/tables/{tableUUID}/triggers', { params: onTable(table) })),
  })
  const add = <Button needs="createTrigger" look="primary" onClick={() => setAdds(true)}>Create trigger</Button>

  async function toggle(t: Trigger) {
    setFailure(null)
    try {
      await change(api.PUT('/tables/{tableUUID}/triggers/{triggerName}', {
        params: { header: onTable(table).header, path: { tableUUID: table.uuid, triggerName: t.name } },
        body: { enabled: !t.enabled },
      }))
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
          <Empty title="No trigger yet" action={add}>
            A trigger calls a function when rows change. The function returns the type trigger; write it at{' '}
            <Link to={`/projects/${table.project}/functions` as string}>Functions</Link> first.
          </Empty>
        ) : (
          <Table label={`Triggers of ${table.name}`} rows={content} keyOf={(t) => t.name} columns={[
            { title: 'Name', cell: (t) => <code className={css.wrap}>{t.name}</code> },
            { title: 'When', cell: (t) => (
              <span title={t.definition}>
                {t.timing} {t.events.join(' or ')}, per {t.level}
                {t.columns.length > 0 && `, on ${t.columns.join(', ')}`}
              </span>
            ) },
            { title: 'Function', narrow: true, cell: (t) => <code className={css.wrap}>{t.function}</code> },
            { title: 'State', cell: (t) => (
              <Badge tone={t.enabled ? 'success' : 'warning'}>{t.enabled ? 'enabled' : 'disabled'}</Badge>
            ) },
            { title: 'Actions', align: 'right', cell: (t) => (
              <Menu label={`Actions of ${t.name}`} items={[
                { text: t.enabled ? 'Disable' : 'Enable', needs: 'updateTrigger', onSelect: () => void toggle(t) },
                { text: 'Drop trigger', danger: true, needs: 'deleteTrigger', onSelect: () => setDropped(t) },
              ]} />
            ) },
          ]} />
        )}
      </Loaded>
      {adds && <TriggerForm table={table} onClose={() => setAdds(false)} />}
      {dropped && <DropTrigger table={table} trigger={dropped} onClose={() => setDropped(null)} />}
    </>
  )
}

function DropTrigger({ table, trigger, onClose }: { table: TableRef; trigger: Trigger; onClose: () => void }) {
  async function drop() {
    await change(api.DELETE('/tables/{tableUUID}/triggers/{triggerName}', {
      params: { header: onTable(table).header, path: { tableUUID: table.uuid, triggerName: trigger.name } },
    }))
    await reload(table.project)
  }

  return (
    <Confirm title={`Drop ${trigger.name}`} open onClose={onClose} action="Drop trigger" onSubmit={drop}>
      <p>
        Changes of rows no longer call <code>{trigger.function}</code>. The function remains, and no rows are lost.
      </p>
    </Confirm>
  )
}
