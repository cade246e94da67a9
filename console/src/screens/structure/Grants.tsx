import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/structure'
import { api, read, type Schemas } from '../../api/client'
import { Button } from '../../components/Button'
import { change } from '../../components/change'
import { CheckField } from '../../components/Field'
import { Row } from '../../components/Page'
import { useRefusal } from '../../components/rights'
import { FailureNote, Loaded } from '../../components/States'
import { toast } from '../../components/Toast'
import { onTable, reload, type TableRef } from './table'
import css from './Structure.module.css'

type Grant = Schemas['Grant']
type Role = Grant['role']

const onRows = ['select', 'insert', 'update', 'delete']
const privileges = [...onRows, 'truncate', 'references', 'trigger'] // policies do not restrict the last three
const changing = new Set(['insert', 'update', 'delete'])
const meanings: Record<Role, string> = {
  public: texts.everyRole, anon: texts.callersWithoutAnAccount, authenticated: texts.signedInUsers,
  service_role: texts.yourOwnServers,
}

/** Which role may act on the table at all. */
export function Grants({ table }: { table: TableRef }) {
  const query = useQuery({
    queryKey: ['tables', table.project, table.uuid, 'grants'],
    queryFn: () => read(api.GET('/tables/{tableUUID}/grants', { params: onTable(table) })),
  })

  return <Loaded query={query}>{({ content }) => <Matrix table={table} grants={content} />}</Loaded>
}

function Matrix({ table, grants }: { table: TableRef; grants: Grant[] }) {
  const [edited, setEdited] = useState<Partial<Record<Role, string[]>>>({})
  const refusal = useRefusal('updateGrants')
  const [confirmed, setConfirmed] = useState(false)
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)
  const changes = grants.flatMap(({ role, privileges: had }) => {
    const next = edited[role]
    return next === undefined || same(next, had) ? [] : [{ role, privileges: next.filter((p) => mayHave(role, p)) }]
  })
  const isOpen = changes.some((g) => (g.role === 'anon' || g.role === 'public') && g.privileges.some((p) => changing.has(p)))

  function toggle(grant: Grant, privilege: string, on: boolean) {
    const now = edited[grant.role] ?? grant.privileges
    setEdited({ ...edited, [grant.role]: on ? [...now, privilege] : now.filter((p) => p !== privilege) })
  }

  async function save() {
    setBusy(true)
    setFailure(null)
    try {
      await change(api.PUT('/tables/{tableUUID}/grants', {
        params: onTable(table), body: { grants: changes, ...(isOpen && { confirm: confirmed }) },
      }))
      await reload(table.project)
      setEdited({})
      setConfirmed(false)
      toast(texts.savedGrants)
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <>
      <p>{texts.aGrantLetsARoleAct}</p>
      <div className={css.matrix} tabIndex={0} role="region" aria-label={texts.grants}>
        <table>
          <thead>
            <tr>
              <th scope="col">{texts.role}</th>
              {privileges.map((p) => <th key={p} scope="col">{p}</th>)}
            </tr>
          </thead>
          <tbody>
            {grants.map((grant) => (
              <tr key={grant.role}>
                <th scope="row">
                  {grant.role}
                  <p className={css.quiet}>{meanings[grant.role]}</p>
                </th>
                {privileges.map((p) => {
                  const on = (edited[grant.role] ?? grant.privileges).includes(p)
                  return (
                    <td key={p} className={on === grant.privileges.includes(p) ? '' : css.changed}>
                      <input type="checkbox" aria-label={texts.roleMayP(grant.role, p)} checked={on}
                        disabled={refusal !== undefined || (!mayHave(grant.role, p) && !on)}
                        onChange={(e) => toggle(grant, p, e.target.checked)} />
                    </td>
                  )
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {isOpen && (
        <CheckField label={texts.callersWithoutAnAccountMay} checked={confirmed}
          hint={texts.theChangeLetsAnonOr}
          onChange={(e) => setConfirmed(e.target.checked)} />
      )}
      {failure !== null && <FailureNote error={failure} />}
      <Row>
        <Button needs="updateGrants" look="primary" busy={busy} disabled={changes.length === 0 || (isOpen && !confirmed)}
          onClick={() => void save()}>
          {texts.saveGrants}
        </Button>
        {changes.length > 0 && <Button onClick={() => setEdited({})}>{texts.discardChanges}</Button>}
      </Row>
    </>
  )
}

/** The API grants only the service role what policies do not restrict. */
const mayHave = (role: Role, privilege: string) => role === 'service_role' || onRows.includes(privilege)
const same = (a: string[], b: string[]) => a.length === b.length && a.every((x) => b.includes(x))
