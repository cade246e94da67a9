import { useDeferredValue, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/account'
import { api, read, type Schemas } from '../../api/client'
import { Code, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { RoleField, roleName, roles } from '../../components/Roles'
import { ShownOnce } from '../../components/ShownOnce'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'
import { useURLState } from '../../url'
import css from './Tokens.module.css'

type Token = Schemas['Token']
type Project = Pick<Schemas['Project'], 'uuid' | 'name'>

interface Created {
  name: string
  token: string
}

/** Personal access tokens, for scripts and the command line. */
export function Tokens({ role }: { role: number }) {
  const [page, setPage] = useURLState('page', '1')
  const [creates, setCreates] = useState(false)
  const [created, setCreated] = useState<Created>()
  const [revoked, setRevoked] = useState<Token>()
  const query = useQuery({
    queryKey: ['tokens', page],
    queryFn: () => read(api.GET('/tokens', {
      params: { query: { page: Number(page), sort: 'createdAt', order: 'desc' } },
    })),
  })
  const create = <Button look="primary" onClick={() => setCreates(true)}>{texts.createToken}</Button>

  return (
    <Card title={texts.accessTokens} actions={create}
      lead={texts.aScriptActsAsYou}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noTokenYet} action={create}>{texts.createOneForAScript}</Empty>
        ) : (
          <>
            <Table label={texts.accessTokens} rows={content} keyOf={(t) => t.uuid} columns={[
              { title: texts.name, cell: (t) => t.name },
              { title: texts.role, cell: (t) => roleName(t.roleId) },
              { title: texts.beginsWith, cell: (t) => <code>{t.hint}…</code>, narrow: true },
              { title: texts.projects, cell: (t) => t.projectUuids === null ? 'all' : t.projectUuids.length, narrow: true },
              { title: texts.lastUsed, cell: (t) => <Time at={t.lastUsedAt} />, narrow: true },
              { title: texts.expires, cell: (t) => <Time at={t.expiresAt} /> },
              { title: '', align: 'right', cell: (t) => (
                <Button look="danger" aria-label={texts.revokeTokenName(t.name)} onClick={() => setRevoked(t)}>{texts.revoke}</Button>
              ) },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {creates && <NewToken highest={role} onClose={() => setCreates(false)} onCreated={setCreated} />}
      {created && (
        <ShownOnce title={texts.tokenName(created.name)} onClose={() => setCreated(undefined)}
          values={[{ label: texts.token, value: created.token }]}>
          <Code label={texts.aFirstRequest} text={texts.curlProjectsHAuthorizationBearer(location.origin, created.token)} />
        </ShownOnce>
      )}
      {revoked && (
        <Confirm title={texts.revokeToken} open action={texts.revokeToken} onClose={() => setRevoked(undefined)} onSubmit={async () => {
          await read(api.DELETE('/tokens/{tokenUUID}', { params: { path: { tokenUUID: revoked.uuid } } }))
          await queries.invalidateQueries({ queryKey: ['tokens'] })
        }}>
          {texts.scriptsWithAreRefusedA(<b>{revoked.name}</b>)}
        </Confirm>
      )}
    </Card>
  )
}

const shown = 20 // projects to choose from
const lifetimes = [7, 30, 90, 365] // days

function NewToken({ highest, onClose, onCreated }: {
  highest: number
  onClose: () => void
  onCreated: (created: Created) => void
}) {
  const [name, setName] = useState('')
  const [role, setRole] = useState<number>(Math.max(highest, roles.developer))
  const [days, setDays] = useState(30)
  const [projects, setProjects] = useState<Project[]>([])
  const [idempotency] = useState(() => crypto.randomUUID())

  async function create() {
    const { metadata } = await read(api.POST('/tokens', {
      body: {
        name, role_id: role,
        expires_at: new Date(Date.now() + days * 86_400_000 - 60_000).toISOString(), // clocks differ; a year is the limit
        ...(projects.length > 0 && { project_uuids: projects.map((p) => p.uuid) }),
      },
      headers: { 'Idempotency-Key': idempotency },
    }))
    onCreated({ name, token: metadata.token })
    await queries.invalidateQueries({ queryKey: ['tokens'] })
  }

  return (
    <FormDialog title={texts.newAccessToken} open onClose={onClose} action={texts.createToken} onSubmit={create}>
      <TextField label={texts.name} required maxLength={100} autoFocus value={name} hint={texts.whatUsesItSuchAs}
        onChange={(e) => setName(e.target.value)} />
      <RoleField highest={highest} value={role} onRole={setRole} />
      <SelectField label={texts.validFor} value={days} onChange={(e) => setDays(Number(e.target.value))}>
        {lifetimes.map((n) => <option key={n} value={n}>{n === 365 ? texts.aYear : texts.nDays(n)}</option>)}
      </SelectField>
      <ProjectChoice chosen={projects} onChoose={setProjects} />
    </FormDialog>
  )
}

/** Chooses projects by their name: a person can have a thousand of them. */
function ProjectChoice({ chosen, onChoose }: { chosen: Project[]; onChoose: (projects: Project[]) => void }) {
  const [typed, setTyped] = useState('')
  const search = useDeferredValue(typed)
  const query = useQuery({
    queryKey: ['projects', 'choice', search],
    queryFn: () => read(api.GET('/projects', {
      params: { query: { limit: shown, sort: 'name', ...(search !== '' && { search }) } },
    })),
    placeholderData: (former) => former,
  })
  const isChosen = (p: Project) => chosen.some((c) => c.uuid === p.uuid)

  return (
    <fieldset className={css.projects}>
      <legend>{texts.projects}</legend>
      <p className={css.hint}>{texts.noneChosenAllThatYou}</p>
      <Loaded query={query} rows={2}>
        {({ content, metadata }) => (
          <>
            {(typed !== '' || metadata.total > shown) && (
              <TextField label={texts.searchProjects} type="search" value={typed} onChange={(e) => setTyped(e.target.value)} />
            )}
            {[...chosen, ...content.filter((p) => !isChosen(p))].map((p) => (
              <CheckField key={p.uuid} label={p.name} checked={isChosen(p)} onChange={(e) =>
                onChoose(e.target.checked ? [...chosen, p] : chosen.filter((c) => c.uuid !== p.uuid))} />
            ))}
          </>
        )}
      </Loaded>
    </fieldset>
  )
}
