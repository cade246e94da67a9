import { useState, type ReactNode } from 'react'
import { Link } from '@tanstack/react-router'
import { texts } from '#texts/home'
import { api, read, type Schemas } from '../../api/client'
import { Code } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Card } from '../../components/Page'
import { useMayRead, useRefusal } from '../../components/rights'
import { Tabs } from '../../components/Tabs'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { useURLState } from '../../url'
import css from './Home.module.css'
import { useKeys, useStatistics } from './queries'
import { rememberedKey, rememberKey } from './snippetKey'
import { clients, placeholder, snippet, type Client } from './snippets'

/** The way from an empty project to the first rows in an application. */
export function FirstSteps({ project, enabled }: { project: string; enabled: boolean }) {
  const [client] = useURLState('client', 'curl')
  const statistics = useStatistics(project, enabled)
  const mayRead = useMayRead('listKeys')
  const refusal = useRefusal('listKeys')
  const keys = useKeys(project, enabled && mayRead)
  const table = firstTable(statistics.data?.content.tables)
  const publishable = (keys.data?.content ?? []).filter((k) => k.kind === 'publishable')
  const key = rememberedKey(project, publishable.map((k) => k.hint))
  const chosen: Client = clients.find((c) => c === client) ?? 'curl'

  return (
    <Card title={texts.firstSteps} lead={texts.threeStepsToTheFirst}>
      <ol className={css.steps}>
        <Step done={table !== undefined} title={texts.createATable}>
          {texts.inByOrFromA(<Link to={`/projects/${project}/tables` as string}>{texts.tables}</Link>, <Link to={`/projects/${project}/sql` as string}>{texts.sql}</Link>)}
        </Step>
        <Step done={publishable.length > 0} title={texts.createAPublishableKey}>
          <KeyStep project={project} known={key !== null} exists={publishable.length > 0} ready={keys.data !== undefined}
            forbidden={refusal !== undefined} />
        </Step>
        <Step done={false} title={texts.readRows}>
          {texts.theKeyReadsWhatGrants(<code>anon</code>)}
        </Step>
      </ol>
      <div className={css.snippets}>
        <Tabs label={texts.client} tabs={clients.map((c) => ({
          text: c, active: c === chosen, to: '.', replace: true, resetScroll: false,
          search: ((former: Record<string, unknown>) => ({ ...former, client: c })) as never,
        }))} />
        <div className={css.snippet}>
          <Code label={texts.theChosenExample(chosen)}
            text={snippet(chosen, { origin: location.origin, project, key: key ?? placeholder, table: table ?? 'todos' })} />
        </div>
        {chosen === 'psql' && (
          <p className={css.quiet}>
            {texts.programsWithoutTheCommandLine(<Link to={`/projects/${project}/keys` as string} search={{ tab: 'database' } as never}>{texts.databaseCredential}</Link>)}
          </p>
        )}
      </div>
    </Card>
  )
}

function Step({ done, title, children }: { done: boolean; title: string; children: ReactNode }) {
  return (
    <li>
      <h3>{title}{done && <span className={css.done}>{texts.done}</span>}</h3>
      <div className={css.stepText}>{children}</div>
    </li>
  )
}

function KeyStep({ project, known, exists, ready, forbidden }: {
  project: string
  known: boolean
  exists: boolean
  ready: boolean
  forbidden: boolean
}) {
  const [busy, setBusy] = useState(false)
  const [idempotency] = useState(() => crypto.randomUUID())

  async function create() {
    setBusy(true)
    try {
      const { metadata } = await read(api.POST('/projects/{projectUUID}/keys', {
        params: { path: { projectUUID: project } },
        body: { name: texts.firstSteps, kind: 'publishable' },
        headers: { 'Idempotency-Key': idempotency },
      }))
      rememberKey(project, metadata.key)
      await queries.invalidateQueries({ queryKey: ['keys', project] })
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    } finally {
      setBusy(false)
    }
  }

  if (forbidden) return <>{texts.askAnAdminOfThe(<code>{placeholder}</code>)}</>
  if (known) return <>{texts.theExamplesBelowHaveIt}</>

  return (
    <>
      <p>
        {exists
          ? texts.putYourKeyForThe(placeholder)
          : texts.applicationsSendItWithEach}
      </p>
      <Button needs="createKey" busy={busy} disabled={!ready} onClick={() => void create()}>
        {texts.createKeyForTheExamples}
      </Button>
    </>
  )
}

function firstTable(tables: Schemas['TableStatistics'][] | undefined): string | undefined {
  return tables?.find((t) => t.schema === 'public')?.name
}
