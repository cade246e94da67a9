import { useEffect, useState } from 'react'
import { useParams } from '@tanstack/react-router'
import { texts } from '#texts/sql'
import { CodeEditor } from '../../components/CodeEditor'
import { Page } from '../../components/Page'
import { useCatalog } from './catalog'
import { History } from './History'
import { Outcome } from './Outcome'
import { Parameters } from './Parameters'
import { SavedQueries } from './SavedQueries'
import { useSQLSearch } from './search'
import { parametersOf } from './statement'
import { TabStrip } from './TabStrip'
import { useTabs } from './tabs'
import { Toolbar } from './Toolbar'
import { useRuns } from './useRuns'
import css from './SQL.module.css'

/** Runs SQL and shows what comes back. */
export function SQL() {
  const { project } = useParams({ strict: false }) as { project: string }
  const { tabs, write, add, close } = useTabs(project)
  const [{ tab: chosen, panel, as = '', query: given }, setSearch] = useSQLSearch()
  const [readOnly, setReadOnly] = useState(true)
  const [parameters, setParameters] = useState<(string | null)[]>([])
  const [selected, setSelected] = useState<{ tab: string; text: string; offset: number } | null>(null)
  const tab = tabs.find((t) => t.id === chosen) ?? tabs[0]!
  const part = selected?.tab === tab.id ? selected : { text: tab.text, offset: 0 }
  const count = parametersOf(tab.text)
  const values = Array.from({ length: count }, (_, i) => parameters[i] ?? (i in parameters ? null : ''))
  const { outcome, run, cancel } = useRuns(project, tab.id)
  const names = useCatalog(project, tab.text)

  useEffect(() => {
    if (given !== undefined) setSearch({ tab: add(given), query: undefined })
  }, [given]) // once for each text that arrives

  const start = (explain: boolean, { text, offset } = part) =>
    void run({ text, offset, whole: tab.text, parameters: values.slice(0, parametersOf(text)), readOnly, as, explain })

  const choose = (id: string) => setSearch({ tab: id })
  const open = (text: string) => setSearch({ tab: add(text), panel: undefined })
  const closePanel = () => setSearch({ panel: undefined })

  return (
    <Page title={texts.sql} full actions={
      <Toolbar project={project} running={outcome.status === 'running'} readOnly={readOnly} onReadOnly={setReadOnly}
        as={as} onAs={(who) => setSearch({ as: who || undefined })}
        selected={part.text !== tab.text} empty={tab.text.trim() === ''}
        onRun={() => start(false)} onExplain={() => start(true)} onCancel={cancel}
        onPanel={(name) => setSearch({ panel: name })} />
    }>
      <div className={css.work}>
        <TabStrip tabs={tabs} active={tab.id} onChoose={choose} onAdd={() => choose(add())} onClose={close} />
        <div className={css.editor}>
          <CodeEditor key={tab.id} size="fill" label={texts.sql} initial={tab.text} {...(names !== undefined && { names })}
            placeholder={texts.selectFrom} marked={outcome.status === 'failed' ? outcome.mark : null}
            onChange={(text) => write(tab.id, text)} onRun={(text, offset) => start(false, { text, offset })}
            onSelect={(text, offset) => setSelected({ tab: tab.id, text, offset })} />
        </div>
        {count > 0 && <Parameters values={values} onChange={setParameters} />}
        <Outcome outcome={outcome} />
      </div>
      {panel === 'history' && <History project={project} onOpen={open} onClose={closePanel} />}
      {panel === 'saved' && (
        <SavedQueries project={project} text={tab.text} onOpen={open} onClose={closePanel} />
      )}
    </Page>
  )
}
