import { useDeferredValue, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read } from '../api/client'
import { Button } from './Button'
import { Dialog } from './Dialog'
import { inputClass, TextField } from './Field'
import { Empty, Loaded } from './States'
import css from './SeeAs.module.css'

/** Chooses whose eyes the rows are seen with: the owner's, or those of the policies. */
export function SeeAs({ project, value, onChange }: { project: string; value: string; onChange: (as: string) => void }) {
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
      <select className={`${inputClass} ${css.select}`} aria-label="See as" value={value} onChange={(e) => {
        if (e.target.value === 'pick') setPicks(true)
        else onChange(e.target.value)
      }}>
        <option value="">See as the owner</option>
        <option value="anon">See as anon</option>
        {user !== '' && <option value={value}>See as {name}</option>}
        <option value="pick">{user === '' ? 'See as a user…' : 'See as another user…'}</option>
      </select>
      {picks && <PickUser project={project} onClose={() => setPicks(false)} onPick={(uuid) => {
        setPicks(false)
        onChange(`user:${uuid}`)
      }} />}
    </>
  )
}

function PickUser({ project, onPick, onClose }: { project: string; onPick: (uuid: string) => void; onClose: () => void }) {
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
    <Dialog title="See as a user" open onClose={onClose}>
      <div className={css.pick}>
        <p>The rows are read with this user’s claims: what policies allow is shown, the rest is not.</p>
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
