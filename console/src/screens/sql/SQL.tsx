import { useEffect, useState } from 'react'
import { useParams } from '@tanstack/react-router'
import { CodeEditor } from '../../components/CodeEditor'
import { Page } from '../../components/Page'
import { useURLState } from '../../url'
import { useCatalog } from './catalog'
import { History } from './History'
import { Outcome } from './Outcome'
import { Parameters } from './Parameters'
import { SavedQueries } from './SavedQueries'
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
  const [chosen, setChosen] = useURLState('tab', '')
  const [panel, setPanel] = useURLState('panel', '')
  const [given, setGiven] = useURLState('query', '') // a text that another screen sent
  const [readOnly, setReadOnly] = useState(true)
  const [parameters, setParameters] = useState<(string | null)[]>([])
  const [selection, setSelection] = useState<{ text: string; offset: number } | null>(null)
  const tab = tabs.find((t) => t.id === chosen) ?? tabs[0]!
  const count = parametersOf(tab.text)
  const values = Array.from({ length: count }, (_, i) => parameters[i] ?? (i in parameters ? null : ''))
  const { outcome, run, cancel } = useRuns(project, tab.id)
  const names = useCatalog(project, tab.text)

  useEffect(() => {
    if (given === '') return

    add(given)
    setGiven('')
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once for a text that arrives
  }, [given])

  const start = (explain: boolean, text = selection?.text ?? tab.text, offset = selection?.offset ?? 0) =>
    void run({ text, offset, whole: tab.text, parameters: values.slice(0, parametersOf(text)), readOnly, explain })

  function open(text: string) {
    setPanel('')
    setChosen(add(text))
  }

  return (
    <Page title="SQL" full actions={
      <Toolbar running={outcome.status === 'running'} readOnly={readOnly} onReadOnly={setReadOnly}
        selected={selection !== null && selection.text !== tab.text} empty={tab.text.trim() === ''}
        onRun={() => start(false)} onExplain={() => start(true)} onCancel={cancel} onPanel={setPanel} />
    }>
      <div className={css.work}>
        <TabStrip tabs={tabs} active={tab.id} onChoose={setChosen} onAdd={() => setChosen(add())} onClose={close} />
        <div className={css.editor}>
          <CodeEditor key={tab.id} size="fill" label="SQL" value={tab.text} {...(names !== undefined && { names })}
            placeholder="select * from …" marked={outcome.status === 'failed' ? outcome.mark : null}
            onChange={(text) => write(tab.id, text)} onRun={(text, offset) => start(false, text, offset)}
            onSelect={(text, offset) => setSelection({ text, offset })} />
        </div>
        {count > 0 && <Parameters values={values} onChange={setParameters} />}
        <Outcome outcome={outcome} />
      </div>
      {panel === 'history' && <History project={project} onOpen={open} onClose={() => setPanel('')} />}
      {panel === 'saved' && (
        <SavedQueries project={project} text={tab.text} onOpen={open} onClose={() => setPanel('')} />
      )}
    </Page>
  )
}
