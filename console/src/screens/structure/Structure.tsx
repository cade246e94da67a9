import { useState } from 'react'
import { texts } from '#texts/structure'
import { Button, ButtonLink } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { TextArea } from '../../components/Field'
import { Page } from '../../components/Page'
import { Loaded } from '../../components/States'
import { tablePath } from '../../components/tableList'
import { Tabs } from '../../components/Tabs'
import { api } from '../../api/client'
import { change } from '../../components/change'
import { useURLState } from '../../url'
import { Access } from './Access'
import { Columns } from './Columns'
import { Constraints } from './Constraints'
import { Grants } from './Grants'
import { Indexes } from './Indexes'
import { Policies } from './Policies'
import { onTable, reload, useTable, type TableRef } from './table'
import { Triggers } from './Triggers'

const sections = {
  columns: { text: texts.columns, view: Columns },
  indexes: { text: texts.indexes, view: Indexes },
  constraints: { text: texts.constraints, view: Constraints },
  triggers: { text: texts.triggers, view: Triggers },
  policies: { text: texts.policies, view: Policies },
  grants: { text: texts.grants, view: Grants },
  access: { text: texts.access, view: Access },
}

type Section = keyof typeof sections
const isSection = (name: string): name is Section => name in sections

/** A table's columns, indexes, constraints, triggers, policies and grants, and who may do what by them. */
export function Structure() {
  const { project, table, query } = useTable()
  const [tab] = useURLState('tab', 'columns')
  const [comments, setComments] = useState(false)
  const section: Section = isSection(tab) ? tab : 'columns'
  const View = sections[section].view
  const info = query.data

  return (
    <Page title={table} lead={info?.metadata.comment || texts.structureOfTheTable} actions={
      <>
        {info && <Button needs="updateTable" onClick={() => setComments(true)}>{texts.editComment}</Button>}
        <ButtonLink to={`/projects/${project}/enums` as string}>{texts.enums}</ButtonLink>
        <ButtonLink to={tablePath(project, table) as string}>{texts.rows}</ButtonLink>
      </>
    }>
      <Tabs label={texts.structure} tabs={(Object.keys(sections) as Section[]).map((name) => ({
        text: sections[name].text, to: '.', search: (name === 'columns' ? {} : { tab: name }) as never, replace: true,
        active: name === section,
      }))} />
      <Loaded query={query}>
        {({ content, metadata }) => {
          const ref = { project, uuid: metadata.uuid, name: `${content.schema}.${content.name}`, schema: content.schema }
          return (
            <>
              <View key={section} table={ref} rowLevelSecurity={metadata.rowLevelSecurity} />
              {comments && (
                <EditComment table={ref} comment={metadata.comment} onClose={() => setComments(false)} />
              )}
            </>
          )
        }}
      </Loaded>
    </Page>
  )
}

function EditComment({ table, comment, onClose }: { table: TableRef; comment: string; onClose: () => void }) {
  const [text, setText] = useState(comment)

  async function save() {
    await change(api.PUT('/tables/{tableUUID}', { params: onTable(table), body: { comment: text } }))
    await reload(table.project)
  }

  return (
    <FormDialog title={texts.commentOnName(table.name)} open onClose={onClose} action={texts.saveComment} onSubmit={save}
      disabled={text === comment}>
      <TextArea label={texts.comment} hint={texts.whatTheTableHoldsFor}
        value={text} onChange={(e) => setText(e.target.value)} />
    </FormDialog>
  )
}
