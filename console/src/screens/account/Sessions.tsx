import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { signOut } from '../../api/session'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { Card } from '../../components/Page'
import { Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { useURLState } from '../../url'
import { browserName } from './browser'

type Session = Schemas['Session']

/** Where the person is signed in. */
export function Sessions() {
  const [page, setPage] = useURLState('page', '1')
  const [ends, setEnds] = useState<Session | 'others'>()
  const query = useQuery({
    queryKey: ['sessions', page],
    queryFn: () => read(api.GET('/sessions', {
      params: { query: { page: Number(page), sort: 'lastUsedAt', order: 'desc' } },
    })),
  })

  return (
    <Card title="Sessions" lead="Where you are signed in. End those that you do not know."
      actions={<Button look="danger" onClick={() => setEnds('others')}>End all other sessions</Button>}>
      <Loaded query={query}>
        {({ content, metadata }) => (
          <>
            <Table label="Sessions" rows={content} keyOf={(s) => s.uuid} columns={[
              { title: 'Program', cell: (s) => (
                <span title={s.userAgent}>{browserName(s.userAgent)} {s.isCurrent && <Badge tone="success">this one</Badge>}</span>
              ) },
              { title: 'Address', cell: (s) => <code>{s.address}</code> },
              { title: 'Last used', cell: (s) => <Time at={s.lastUsedAt} />, narrow: true },
              { title: 'Began', cell: (s) => <Time at={s.createdAt} />, narrow: true },
              { title: 'Ends', cell: (s) => <Time at={s.expiresAt} />, narrow: true },
              { title: '', align: 'right', cell: (s) => s.isCurrent
                ? <Button onClick={() => void signOut().finally(() => queries.clear())}>Sign out</Button>
                : <Button look="danger" aria-label={`End session of ${browserName(s.userAgent)} at ${s.address}`}
                    onClick={() => setEnds(s)}>End</Button> },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {ends !== undefined && (
        <Confirm title={ends === 'others' ? 'End all other sessions' : 'End session'} open onClose={() => setEnds(undefined)}
          action={ends === 'others' ? 'End sessions' : 'End session'} onSubmit={() => end(ends)}>
          {ends === 'others'
            ? 'All your devices and programs but this browser sign in again. Access tokens that you created stay valid.'
            : `${browserName(ends.userAgent)} at ${ends.address} signs in again.`}
        </Confirm>
      )}
    </Card>
  )
}

async function end(session: Session | 'others') {
  if (session === 'others') {
    const { content } = await read(api.DELETE('/sessions'))
    toast(content.length === 1 ? '1 session has ended.' : `${content.length} sessions have ended.`)
  } else {
    await read(api.DELETE('/sessions/{sessionUUID}', { params: { path: { sessionUUID: session.uuid } } }))
  }

  await queries.invalidateQueries({ queryKey: ['sessions'] })
}
