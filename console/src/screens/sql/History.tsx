import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/sql'
import { api, inProject, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Dialog } from '../../components/Dialog'
import { Empty, Loaded } from '../../components/States'
import { Pager } from '../../components/Table'
import css from './SQL.module.css'

/** The project's latest queries, of all its developers. */
export function History({ project, onOpen, onClose }: {
  project: string
  onOpen: (text: string) => void
  onClose: () => void
}) {
  const [page, setPage] = useState(1)
  const query = useQuery({
    queryKey: ['sql', project, 'history', page],
    queryFn: () => read(api.GET('/sql/history', {
      params: { header: inProject(project), query: { page, sort: 'startedAt', order: 'desc' } },
    })),
  })

  return (
    <Dialog title={texts.history} open side onClose={onClose}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noQueryYet}>{texts.theProjectKeepsTheLast}</Empty>
        ) : (
          <>
            <ul className={css.list}>
              {content.map((entry) => <Entry key={entry.uuid} entry={entry} onOpen={onOpen} />)}
            </ul>
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={setPage} />
          </>
        )}
      </Loaded>
    </Dialog>
  )
}

function Entry({ entry, onOpen }: { entry: Schemas['Record']; onOpen: (text: string) => void }) {
  return (
    <li>
      <div className={css.entry}>
        <span className={css.meta}>
          <Time at={entry.startedAt} />
          {entry.durationMs !== null && texts.durationMsMs(entry.durationMs.toFixed(0))}
          {entry.rows !== null && texts.rows(entry.rows.toLocaleString())}
        </span>
        {!entry.readOnly && <Badge tone="warning">{texts.wrote}</Badge>}
        {entry.errorCode !== null && <Badge tone="danger">{entry.errorCode}</Badge>}
        <Button look="quiet" onClick={() => onOpen(entry.query)}>{texts.open}</Button>
      </div>
      <pre tabIndex={0} aria-label={texts.query}>{entry.query}</pre>
    </li>
  )
}
