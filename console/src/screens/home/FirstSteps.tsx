import { useState, type ReactNode } from 'react'
import { Link } from '@tanstack/react-router'
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
    <Card title="First steps" lead="Three steps to the first rows in your application.">
      <ol className={css.steps}>
        <Step done={table !== undefined} title="Create a table">
          In <Link to={`/projects/${project}/tables` as string}>Tables</Link>, by{' '}
          <Link to={`/projects/${project}/sql` as string}>SQL</Link>, or from a CSV file.
        </Step>
        <Step done={publishable.length > 0} title="Create a publishable key">
          <KeyStep project={project} known={key !== null} exists={publishable.length > 0} ready={keys.data !== undefined}
            forbidden={refusal !== undefined} />
        </Step>
        <Step done={false} title="Read rows">
          The key reads what grants and policies let <code>anon</code> read. A new table lets it read nothing until you
          grant it in the table's structure.
        </Step>
      </ol>
      <div className={css.snippets}>
        <Tabs label="Client" tabs={clients.map((c) => ({
          text: c, active: c === chosen, to: '.', replace: true, resetScroll: false,
          search: ((former: Record<string, unknown>) => ({ ...former, client: c })) as never,
        }))} />
        <div className={css.snippet}>
          <Code label={`the ${chosen} example`}
            text={snippet(chosen, { origin: location.origin, project, key: key ?? placeholder, table: table ?? 'todos' })} />
        </div>
        {chosen === 'psql' && (
          <p className={css.quiet}>
            Programs without the command line connect with a{' '}
            <Link to={`/projects/${project}/keys` as string} search={{ tab: 'database' } as never}>database credential</Link>.
          </p>
        )}
      </div>
    </Card>
  )
}

function Step({ done, title, children }: { done: boolean; title: string; children: ReactNode }) {
  return (
    <li>
      <h3>{title}{done && <span className={css.done}> ✓ done</span>}</h3>
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
        body: { name: 'First steps', kind: 'publishable' },
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

  if (forbidden) return <>Ask an admin of the organization for a key, and put it for <code>{placeholder}</code>.</>
  if (known) return <>The examples below have it. Copy them and run them.</>

  return (
    <>
      <p>
        {exists
          ? `Put your key for ${placeholder}. The server shows a key only once; create another one to fill the examples.`
          : 'Applications send it with each request. It is public and may stand in a browser.'}
      </p>
      <Button needs="createKey" busy={busy} disabled={!ready} onClick={() => void create()}>
        Create key for the examples
      </Button>
    </>
  )
}

function firstTable(tables: Schemas['TableStatistics'][] | undefined): string | undefined {
  return tables?.find((t) => t.schema === 'public')?.name
}
