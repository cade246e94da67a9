import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/forms'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Details } from '../../components/Details'
import { Confirm, Dialog } from '../../components/Dialog'
import { SelectField } from '../../components/Field'
import { FilterBar, FilterField, useFilters } from '../../components/Filters'
import { Row, Stack } from '../../components/Page'
import { Empty, FailureNote, Loaded } from '../../components/States'
import { Pager, Table, type Column } from '../../components/Table'
import { download, saveAs } from '../../components/transfer'
import { queries } from '../../queries'
import { answerText } from './answers'
import css from './Form.module.css'

type Response = Schemas['Response']

const columnsShown = 6 // answers in the table; one response shows all

/** The responses to a form. */
export function Responses({ project, form }: { project: string; form: Schemas['FullForm'] }) {
  const [filters, setFilters] = useFilters('page', 'search', 'state', 'from', 'to', 'response')
  const { page, search, state, from, to } = filters
  const narrowing = {
    ...(search !== '' && { search }), ...(from !== '' && { from }), ...(to !== '' && { to }),
    ...((state === 'partial' || state === 'complete') && { state: state as 'partial' | 'complete' }),
  }
  const query = useQuery({
    queryKey: ['responses', project, form.uuid, page, narrowing],
    queryFn: () => read(api.GET('/forms/{formUUID}/responses', {
      params: { path: { formUUID: form.uuid }, query: { page: Number(page) || 1, sort: 'createdAt', order: 'desc', ...narrowing } },
    })),
    placeholderData: (former) => former,
  })
  const filtered = Object.keys(narrowing).length > 0

  return (
    <>
      <FilterBar>
        <FilterField label={texts.searchInAnswers} value={search} onChange={(next) => setFilters({ search: next, page: '' })} />
        <SelectField label={texts.state} value={state} onChange={(e) => setFilters({ state: e.target.value, page: '' })}>
          <option value="">{texts.all}</option>
          <option value="complete">{texts.complete}</option>
          <option value="partial">{texts.partial}</option>
        </SelectField>
        <FilterField label={texts.from} type="date" value={from} onChange={(next) => setFilters({ from: next, page: '' })} />
        <FilterField label={texts.to} type="date" value={to} onChange={(next) => setFilters({ to: next, page: '' })} />
        <Export form={form} narrowing={narrowing} />
      </FilterBar>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={filtered ? texts.noResponseMatches : texts.noResponseYet}>
            {!filtered && texts.createALinkUnderSharing}
          </Empty>
        ) : (
          <>
            <Table label={texts.responses} rows={content} keyOf={(r) => r.uuid} columns={columnsOf(form, setFilters)}
              onOpen={(r) => setFilters({ response: r.uuid })} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: n === 1 ? '' : String(n) })} />
          </>
        )}
      </Loaded>
      {filters.response !== '' && (
        <OneResponse project={project} form={form.uuid} uuid={filters.response} onClose={() => setFilters({ response: '' })} />
      )}
    </>
  )
}

function columnsOf(form: Schemas['FullForm'], open: (patch: { response: string }) => void): Column<Response>[] {
  return [
    { title: texts.time, cell: (r) => (
      <button type="button" className={css.open} onClick={() => open({ response: r.uuid })}>
        <Time at={r.submittedAt ?? r.createdAt} />
      </button>
    ) },
    ...form.fields.slice(0, columnsShown).map((field, i): Column<Response> => ({
      title: field.label,
      narrow: i > 0,
      cell: (r) => {
        const answer = r.answers.find((a) => a.fieldUuid === field.uuid)
        return <span className={css.short}>{answerText(answer?.value, answer?.type)}</span>
      },
    })),
    { title: texts.state, cell: (r) => <Badge tone={r.state === 'complete' ? 'success' : 'neutral'}>{r.state}</Badge> },
  ]
}

function Export({ form, narrowing }: {
  form: Schemas['FullForm']
  narrowing: { search?: string; from?: string; to?: string; state?: string }
}) {
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)

  async function save() {
    setBusy(true)
    setFailure(null)
    try {
      const bytes = await download(`/forms/${form.uuid}/responses/export?${new URLSearchParams(narrowing)}`)
      saveAs(bytes, `${form.name.replace(/[^\p{L}\p{N} _-]/gu, '') || 'responses'}.csv`)
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <div>
      <Button busy={busy} onClick={() => void save()}>{texts.exportCSV}</Button>
      {failure !== null && <FailureNote error={failure} />}
    </div>
  )
}

function OneResponse({ project, form, uuid, onClose }: { project: string; form: string; uuid: string; onClose: () => void }) {
  const [asks, setAsks] = useState(false)
  const path = { formUUID: form, responseUUID: uuid }
  const query = useQuery({
    queryKey: ['responses', project, form, 'one', uuid],
    queryFn: () => read(api.GET('/forms/{formUUID}/responses/{responseUUID}', { params: { path } })),
  })

  async function remove() {
    await read(api.DELETE('/forms/{formUUID}/responses/{responseUUID}', { params: { path } }))
    onClose()
    await queries.invalidateQueries({ queryKey: ['responses', project, form], predicate: (q) => q.queryKey[3] !== 'one' })
    await queries.invalidateQueries({ queryKey: ['forms', project] })
  }

  return (
    <Dialog title={texts.response} open onClose={onClose} side>
      <Loaded query={query}>
        {({ content: r }) => (
          <Stack>
            {r.answers.map((a) => (
              <div key={a.fieldUuid}>
                <h3>{a.label}</h3>
                <p className={css.answer}>{answerText(a.value, a.type)}</p>
              </div>
            ))}
            {r.answers.length === 0 && <p>{texts.noAnswerYet}</p>}
            <Details entries={[
              [texts.state, r.state],
              [texts.begun, <Time at={r.createdAt} />],
              [texts.submitted, r.submittedAt === null ? undefined : <Time at={r.submittedAt} />],
              [texts.expires, r.expiresAt === null ? undefined : <Time at={r.expiresAt} />],
              [texts.versionOfTheFields, r.version],
              ['UUID', <code>{r.uuid}</code>],
            ]} />
            <Row>
              <Button needs="deleteResponse" look="danger" onClick={() => setAsks(true)}>{texts.deleteResponse}</Button>
            </Row>
          </Stack>
        )}
      </Loaded>
      {asks && (
        <Confirm title={texts.deleteThisResponse} open onClose={() => setAsks(false)} action={texts.deleteResponse} onSubmit={remove}>
          <p>{texts.theAnswersAndTheirFiles}</p>
        </Confirm>
      )}
    </Dialog>
  )
}
