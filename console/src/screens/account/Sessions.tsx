import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/account'
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
    <Card title={texts.sessions} lead={texts.whereYouAreSignedIn}
      actions={<Button look="danger" onClick={() => setEnds('others')}>{texts.endAllOtherSessions}</Button>}>
      <Loaded query={query}>
        {({ content, metadata }) => (
          <>
            <Table label={texts.sessions} rows={content} keyOf={(s) => s.uuid} columns={[
              { title: texts.program, cell: (s) => (
                <span title={s.userAgent}>{browserName(s.userAgent)} {s.isCurrent && <Badge tone="success">{texts.thisOne}</Badge>}</span>
              ) },
              { title: texts.address, cell: (s) => <code>{s.address}</code> },
              { title: texts.lastUsed, cell: (s) => <Time at={s.lastUsedAt} />, narrow: true },
              { title: texts.began, cell: (s) => <Time at={s.createdAt} />, narrow: true },
              { title: texts.ends, cell: (s) => <Time at={s.expiresAt} />, narrow: true },
              { title: '', align: 'right', cell: (s) => s.isCurrent
                ? <Button onClick={() => void signOut().finally(() => queries.clear())}>{texts.signOut}</Button>
                : <Button look="danger" aria-label={texts.endSessionOfUserAgentAt(browserName(s.userAgent), s.address)}
                    onClick={() => setEnds(s)}>{texts.end}</Button> },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {ends !== undefined && (
        <Confirm title={ends === 'others' ? texts.endAllOtherSessions : texts.endSession} open onClose={() => setEnds(undefined)}
          action={ends === 'others' ? texts.endSessions : texts.endSession} onSubmit={() => end(ends)}>
          {ends === 'others'
            ? texts.allYourDevicesAndPrograms
            : texts.userAgentAtAddressSignsIn(browserName(ends.userAgent), ends.address)}
        </Confirm>
      )}
    </Card>
  )
}

async function end(session: Session | 'others') {
  if (session === 'others') {
    const { content } = await read(api.DELETE('/sessions'))
    toast(content.length === 1 ? texts.oneSessionHasEnded : texts.countSessionsHaveEnded(content.length))
  } else {
    await read(api.DELETE('/sessions/{sessionUUID}', { params: { path: { sessionUUID: session.uuid } } }))
  }

  await queries.invalidateQueries({ queryKey: ['sessions'] })
}
