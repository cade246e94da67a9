import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { texts } from '#texts/realtime'
import { Code } from '../../components/Bits'
import { Button, ButtonLink } from '../../components/Button'
import { TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { useRefusal } from '../../components/rights'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { tablePath } from '../../components/tableList'
import { toast } from '../../components/Toast'
import { useURLState } from '../../url'
import { setFollowed, useWatched, type Watched } from './queries'
import css from './Realtime.module.css'

const shown = 25

const snippet = `supabase.channel('changes')
  .on('postgres_changes', { event: '*', schema: 'public', table: 'TABLE' }, (change) => console.log(change))
  .subscribe()`

/** A switch per table: whether its changes are kept for those who follow. */
export function FollowedTables({ project }: { project: string }) {
  const [search, setSearch] = useURLState('search', '')
  const [page, setPage] = useURLState('page', '1')
  const query = useWatched(project)

  return (
    <>
      <Card title={texts.followedTables}
        lead={texts.changesOfAFollowedTable}>
        <Loaded query={query}>
          {(tables) => {
            if (tables.length === 0) {
              return (
                <Empty title={texts.noTableYet} action={<ButtonLink to={`/projects/${project}/tables` as string}>{texts.tables}</ButtonLink>}>
                  {texts.createATableThenSwitch}
                </Empty>
              )
            }

            const wanted = search.toLowerCase()
            const found = tables.filter((t) => t.fullName.toLowerCase().includes(wanted))
            const pages = Math.max(1, Math.ceil(found.length / shown))
            const number = Math.min(Math.max(1, Number(page) || 1), pages)

            return (
              <>
                <TextField label={texts.searchByName} type="search" value={search} onChange={(e) => setSearch(e.target.value)} />
                {found.length === 0 ? <Empty title={texts.noTableHasThisName} action={<Button onClick={() => setSearch('')}>{texts.clearSearch}</Button>} /> : (
                  <Table label={texts.tables} rows={found.slice((number - 1) * shown, number * shown)} keyOf={(t) => t.fullName} columns={[
                    { title: texts.table, cell: (t) => <Link to={tablePath(project, t.fullName) as string}>{t.fullName}</Link> },
                    { title: texts.followed, align: 'right', cell: (t) => <Switch project={project} table={t} /> },
                  ]} />
                )}
                <Pager page={number} pages={pages} total={found.length} onPage={(n) => setPage(String(n))} />
              </>
            )
          }}
        </Loaded>
      </Card>
      <Card title={texts.followATable} lead={texts.inAnApplicationWithSupabase}>
        <Code label={texts.theCode} text={snippet} />
      </Card>
    </>
  )
}

function Switch({ project, table }: { project: string; table: Watched }) {
  const [busy, setBusy] = useState(false)
  const refusal = useRefusal('runSQL')

  async function change(follows: boolean) {
    setBusy(true)
    try {
      await setFollowed(project, table.fullName, follows)
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    } finally {
      setBusy(false)
    }
  }

  return (
    <label className={css.switch} title={refusal}>
      <input type="checkbox" role="switch" aria-label={texts.followFullName(table.fullName)} checked={table.isFollowed}
        disabled={busy || refusal !== undefined} onChange={(e) => void change(e.target.checked)} />
      {table.isFollowed ? texts.on : texts.off}
    </label>
  )
}
