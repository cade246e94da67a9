import { useDeferredValue, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read } from '../api/client'
import { Button } from './Button'
import { Dialog } from './Dialog'
import { inputClass, TextField } from './Field'
import { Empty, Loaded } from './States'
import css from './SeeAs.module.css'

interface Props {
  project: string
  value: string // '', anon, authenticated, or user: and a UUID
  onChange: (as: string) => void
  runs?: boolean // statements, rather than reading rows
}

/** Chooses who acts: the owner, or a caller of the application, about whom the policies decide. */
export function SeeAs({ project, value, onChange, runs = false }: Props) {
  const [picks, setPicks] = useState(false)
  const user = value.startsWith('user:') ? value.slice(5) : ''
  const { data } = useQuery({
    queryKey: ['endusers', project, user],
    enabled: user !== '',
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}', {
      params: { path: { projectUUID: project, endUserUUID: user } },
    })),
  })
  const name = data?.content.email || data?.content.phone || user.slice(0, 8)

  return (
    <>
      <select className={`${inputClass} ${css.select}`} aria-label={runs ? 'Run as' : 'See as'} value={value} onChange={(e) => {
        if (e.target.value === 'pick') setPicks(true)
        else onChange(e.target.value)
      }}>
        <option value="">{runs ? 'Run as the owner' : 'See as the owner'}</option>
        <option value="anon">{runs ? 'Run as anon' : 'See as anon'}</option>
        {runs && <option value="authenticated">Run as authenticated</option>}
        {user !== '' && <option value={value}>{runs ? `Run as ${name}` : `See as ${name}`}</option>}
        <option value="pick">
          {user === '' ? (runs ? 'Run as a user…' : 'See as a user…') : (runs ? 'Run as another user…' : 'See as another user…')}
        </option>
      </select>
      {picks && <PickUser project={project} runs={runs} onClose={() => setPicks(false)} onPick={(uuid) => {
        setPicks(false)
        onChange(`user:${uuid}`)
      }} />}
    </>
  )
}

function PickUser({ project, runs, onPick, onClose }: {
  project: string
  runs: boolean
  onPick: (uuid: string) => void
  onClose: () => void
}) {
  const [typed, setTyped] = useState('')
  const search = useDeferredValue(typed)
  const query = useQuery({
    queryKey: ['endusers', project, 'search', search],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users', {
      params: { path: { projectUUID: project }, query: { limit: 20, ...(search !== '' && { search }) } },
    })),
    placeholderData: (former) => former,
  })

  return (
    <Dialog title={runs ? 'Run as a user' : 'See as a user'} open onClose={onClose}>
      <div className={css.pick}>
        <p>
          {runs
            ? 'Statements have this user’s role and claims: grants and policies decide what they read and change.'
            : 'The rows are read with this user’s claims: what policies allow is shown, the rest is not.'}
        </p>
        <TextField label="Search by address" type="search" autoFocus value={typed} onChange={(e) => setTyped(e.target.value)} />
        <Loaded query={query} rows={3}>
          {({ content }) => content.length === 0 ? (
            <Empty title={search === '' ? 'No user yet' : 'No user has this address'}>
              Users sign up in your application, or you create them under Users.
            </Empty>
          ) : (
            <ul className={css.users}>
              {content.map((u) => (
                <li key={u.uuid}>
                  <Button look="quiet" onClick={() => onPick(u.uuid)}>{u.email || u.phone || `Anonymous ${u.uuid.slice(0, 8)}`}</Button>
                </li>
              ))}
            </ul>
          )}
        </Loaded>
      </div>
    </Dialog>
  )
}
