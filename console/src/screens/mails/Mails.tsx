import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/mails'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Details } from '../../components/Details'
import { Dialog } from '../../components/Dialog'
import { SelectField } from '../../components/Field'
import { FilterBar, useFilters, useProject } from '../../components/Filters'
import { MailFrame } from '../../components/MailFrame'
import { Page, Row, Stack } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import css from './Mails.module.css'

const sorts = {
  newest: { sort: 'createdAt', order: 'desc', text: texts.newestFirst },
  oldest: { sort: 'createdAt', order: 'asc', text: texts.oldestFirst },
  recipient: { sort: 'recipient', order: 'asc', text: texts.recipient },
} as const

/** Mails and text messages to the application's users that were not sent. */
export function Mails() {
  const project = useProject()
  const [{ page, sort, mail }, setFilters] = useFilters('page', 'sort', 'mail')
  const { sort: column, order } = sorts[sort as keyof typeof sorts] ?? sorts.newest
  const query = useQuery({
    queryKey: ['mails', project, page, column, order],
    queryFn: () => read(api.GET('/projects/{projectUUID}/mails', {
      params: { path: { projectUUID: project }, query: { page: Number(page) || 1, sort: column, order } },
    })),
    placeholderData: (former) => former,
    refetchInterval: 10_000,
  })

  return (
    <Page title={texts.mails} lead={texts.messagesToYourUsersThat}
      actions={<Button busy={query.isFetching} onClick={() => void query.refetch()}>{texts.refresh}</Button>}>
      <FilterBar>
        <SelectField label={texts.order} value={sort} onChange={(e) => setFilters({ sort: e.target.value, page: '' })}>
          {Object.entries(sorts).map(([name, s]) => (
            <option key={name} value={name === 'newest' ? '' : name}>{s.text}</option>
          ))}
        </SelectField>
      </FilterBar>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noMailWaits}>
            {texts.confirmationsInvitationsSignInLinks(<code>SOCLE_SMTP_URL</code>)}
          </Empty>
        ) : (
          <>
            <Table label={texts.mails} rows={content} keyOf={(m) => m.uuid} onOpen={(m) => setFilters({ mail: m.uuid })}
              columns={[
                { title: texts.recipient, cell: (m) => (
                  <button type="button" className={css.open} onClick={() => setFilters({ mail: m.uuid })}>{m.recipient}</button>
                ) },
                { title: texts.subject, cell: (m) => m.subject, narrow: true },
                { title: texts.kind, cell: (m) => m.kind.replaceAll('_', ' ') },
                { title: texts.state, cell: (m) => <State mail={m} /> },
                { title: texts.created, cell: (m) => <Time at={m.createdAt} />, narrow: true },
              ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: n === 1 ? '' : String(n) })} />
          </>
        )}
      </Loaded>
      {mail !== '' && <OneMail project={project} uuid={mail} onClose={() => setFilters({ mail: '' })} />}
    </Page>
  )
}

function State({ mail }: { mail: Schemas['Mail'] }) {
  return mail.error === '' ? <Badge>{texts.keptHere}</Badge> : <Badge tone="danger">{texts.refused}</Badge>
}

function OneMail({ project, uuid, onClose }: { project: string; uuid: string; onClose: () => void }) {
  const [view, setView] = useState<'mail' | 'text' | 'source'>('mail')
  const query = useQuery({
    queryKey: ['mails', project, 'one', uuid],
    queryFn: () => read(api.GET('/projects/{projectUUID}/mails/{mailUUID}', {
      params: { path: { projectUUID: project, mailUUID: uuid } },
    })),
  })

  return (
    <Dialog title={query.data?.content.subject || texts.message} open onClose={onClose} side wide>
      <Loaded query={query}>
        {({ content: m }) => (
          <Stack>
            <Details entries={[
              [texts.to, m.recipient],
              [texts.kind, m.kind.replaceAll('_', ' ')],
              [texts.state, <State mail={m} />],
              [texts.failure, m.error === '' ? undefined : m.error],
              [texts.created, <Time at={m.createdAt} />],
            ]} />
            {m.html !== '' && (
              <Row>
                {(['mail', 'text', 'source'] as const).map((v) => (
                  <Button key={v} look={v === view ? 'plain' : 'quiet'} aria-pressed={v === view} onClick={() => setView(v)}>
                    {{ mail: texts.mail, text: texts.plainText, source: texts.htmlSource }[v]}
                  </Button>
                ))}
              </Row>
            )}
            <Body mail={m} view={m.html === '' ? 'text' : view} />
          </Stack>
        )}
      </Loaded>
    </Dialog>
  )
}

function Body({ mail, view }: { mail: Schemas['Mail']; view: 'mail' | 'text' | 'source' }) {
  const text = view === 'source' ? mail.html : mail.text
  if (view !== 'mail' && text === '') return <Empty title={texts.thisMessageHasNoText} />
  if (view !== 'mail') return <pre className={css.text}>{text}</pre>

  return <MailFrame html={mail.html} />
}
