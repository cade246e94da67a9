import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/admin'
import { api, read, type Schemas } from '../../api/client'
import { currentUser } from '../../api/session'
import { Badge, Time } from '../../components/Bits'
import { Confirm } from '../../components/Dialog'
import { SelectField } from '../../components/Field'
import { FilterBar, FilterField, useFilters } from '../../components/Filters'
import { Menu, type MenuItem } from '../../components/Menu'
import { Card } from '../../components/Page'
import { roles } from '../../components/Roles'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { acts, type Act } from './userActs'

type User = Schemas['User']
type Status = User['status']

/** Everybody with an account on this instance. */
export function Users() {
  const [{ search, status, page }, setFilters] = useFilters('search', 'status', 'page')
  const [asked, setAsked] = useState<{ act: Act; user: User }>()
  const query = useQuery({
    queryKey: ['admin users', search, status, page],
    queryFn: () => read(api.GET('/admin/users', { params: { query: {
      page: Number(page) || 1, sort: 'createdAt', order: 'desc',
      ...(search !== '' && { search }),
      ...(status !== '' && { status: status as Status }),
    } } })),
  })

  return (
    <Card title={texts.users} lead={texts.everybodyWithAnAccountOn}>
      <FilterBar>
        <FilterField label={texts.searchByNameOrAddress} value={search}
          onChange={(next) => setFilters({ search: next, page: '' })} />
        <SelectField label={texts.status} value={status} onChange={(e) => setFilters({ status: e.target.value, page: '' })}>
          <option value="">{texts.all}</option>
          <option value="active">{texts.active}</option>
          <option value="suspended">{texts.suspended}</option>
        </SelectField>
      </FilterBar>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noUserMatches}>{texts.searchForAPartOf}</Empty>
        ) : (
          <>
            <Table label={texts.users} rows={content} keyOf={(u) => u.uuid} columns={[
              { title: texts.userName, cell: (u) => u.username },
              { title: texts.eMailAddress, cell: (u) => u.email, narrow: true },
              { title: texts.status, cell: (u) => (
                <>
                  <Badge tone={u.status === 'active' ? 'success' : 'danger'}>{u.status}</Badge>{' '}
                  {u.roleId === roles.administrator && <Badge>{texts.administrator}</Badge>}
                </>
              ) },
              { title: texts.created, cell: (u) => <Time at={u.createdAt} />, narrow: true },
              { title: '', align: 'right', cell: (u) => (
                <Menu label={texts.actionsForUsername(u.username)} items={itemsOf(u, (act) => setAsked({ act, user: u }))} />
              ) },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: String(n) })} />
          </>
        )}
      </Loaded>
      {asked && (
        <Confirm title={acts[asked.act].title} open action={acts[asked.act].title} onClose={() => setAsked(undefined)}
          {...(asked.act === 'remove' && { name: asked.user.username })}
          onSubmit={() => acts[asked.act].run(asked.user.uuid)}>
          <p><b>{asked.user.username}</b> ({asked.user.email}): {acts[asked.act].loss}</p>
        </Confirm>
      )}
    </Card>
  )
}

function itemsOf(user: User, ask: (act: Act) => void): MenuItem[] {
  const isSelf = user.uuid === currentUser()?.uuid
  const isAdministrator = user.roleId === roles.administrator
  const item = (act: Act, danger = false): MenuItem => ({ text: acts[act].title, danger, onSelect: () => ask(act) })

  return [
    item(isAdministrator ? 'demote' : 'promote'),
    ...(isSelf ? [] : [
      item('removeFactor'),
      user.status === 'active' ? item('suspend', true) : item('activate'),
      item('remove', true),
    ]),
  ]
}
