import { useDeferredValue, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/components'
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
      <select className={`${inputClass} ${css.select}`} aria-label={runs ? texts.runAs : texts.seeAs} value={value} onChange={(e) => {
        if (e.target.value === 'pick') setPicks(true)
        else onChange(e.target.value)
      }}>
        <option value="">{runs ? texts.runAsTheOwner : texts.seeAsTheOwner}</option>
        <option value="anon">{runs ? texts.runAsAnon : texts.seeAsAnon}</option>
        {runs && <option value="authenticated">{texts.runAsAuthenticated}</option>}
        {user !== '' && <option value={value}>{runs ? texts.runAsName(name) : texts.seeAsName(name)}</option>}
        <option value="pick">
          {user === '' ? (runs ? texts.runAsAUser : texts.seeAsAUser) : (runs ? texts.runAsAnotherUser : texts.seeAsAnotherUser)}
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
    <Dialog title={runs ? texts.runAsAUser2 : texts.seeAsAUser2} open onClose={onClose}>
      <div className={css.pick}>
        <p>
          {runs
            ? texts.statementsHaveThisUsersRole
            : texts.theRowsAreReadWith}
        </p>
        <TextField label={texts.searchByAddress} type="search" autoFocus value={typed} onChange={(e) => setTyped(e.target.value)} />
        <Loaded query={query} rows={3}>
          {({ content }) => content.length === 0 ? (
            <Empty title={search === '' ? texts.noUserYet : texts.noUserHasThisAddress}>
              {texts.usersSignUpInYour}
            </Empty>
          ) : (
            <ul className={css.users}>
              {content.map((u) => (
                <li key={u.uuid}>
                  <Button look="quiet" onClick={() => onPick(u.uuid)}>{u.email || u.phone || texts.anonymousUuid(u.uuid.slice(0, 8))}</Button>
                </li>
              ))}
            </ul>
          )}
        </Loaded>
      </div>
    </Dialog>
  )
}
