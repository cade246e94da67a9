import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/structure'
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
  const add = <Button needs="createTrigger" look="primary" onClick={() => setAdds(true)}>{texts.createTrigger}</Button>

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
          <Empty title={texts.noTriggerYet} action={add}>
            {texts.aTriggerCallsAFunction(<Link to={`/projects/${table.project}/functions` as string}>{texts.functions}</Link>)}
          </Empty>
        ) : (
          <Table label={texts.triggersOfName(table.name)} rows={content} keyOf={(t) => t.name} columns={[
            { title: texts.name, cell: (t) => <code className={css.wrap}>{t.name}</code> },
            { title: texts.when, cell: (t) => (
              <span title={t.definition}>
                {texts.timingEventsPerLevel(t.timing, t.events.join(' or '), t.level)}
                {t.columns.length > 0 && texts.onColumns(t.columns.join(', '))}
              </span>
            ) },
            { title: texts.function, narrow: true, cell: (t) => <code className={css.wrap}>{t.function}</code> },
            { title: texts.state, cell: (t) => (
              <Badge tone={t.enabled ? 'success' : 'warning'}>{t.enabled ? texts.enabled : texts.disabled}</Badge>
            ) },
            { title: texts.actions, align: 'right', cell: (t) => (
              <Menu label={texts.actionsOfName(t.name)} items={[
                { text: t.enabled ? texts.disable : texts.enable, needs: 'updateTrigger', onSelect: () => void toggle(t) },
                { text: texts.dropTrigger, danger: true, needs: 'deleteTrigger', onSelect: () => setDropped(t) },
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
    <Confirm title={texts.dropName(trigger.name)} open onClose={onClose} action={texts.dropTrigger} onSubmit={drop}>
      <p>
        {texts.changesOfRowsNoLonger(<code>{trigger.function}</code>)}
      </p>
    </Confirm>
  )
}
