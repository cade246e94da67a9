import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/endusers'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { SelectField } from '../../components/Field'
import { FilterBar, FilterField, useFilters, useProject } from '../../components/Filters'
import { Page } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { NewEndUser } from './NewEndUser'
import { InviteEndUser } from './SendMail'
import { titleOf } from './account'

type Account = Schemas['Account']

const sorts = {
  newest: { sort: 'createdAt', order: 'desc', text: texts.newestFirst },
  oldest: { sort: 'createdAt', order: 'asc', text: texts.oldestFirst },
  email: { sort: 'email', order: 'asc', text: texts.address },
  seen: { sort: 'lastSignInAt', order: 'desc', text: texts.lastSignIn },
} as const

/** The users of the project's application. */
export function EndUsers() {
  const project = useProject()
  const navigate = useNavigate()
  const [{ page, search, sort }, setFilters] = useFilters('page', 'search', 'sort')
  const [creates, setCreates] = useState(false)
  const [invites, setInvites] = useState(false)
  const { sort: column, order } = sorts[sort as keyof typeof sorts] ?? sorts.newest
  const query = useQuery({
    queryKey: ['end-users', project, page, search, column, order],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users', {
      params: {
        path: { projectUUID: project },
        query: { page: Number(page) || 1, sort: column, order, ...(search !== '' && { search }) },
      },
    })),
    placeholderData: (former) => former,
  })

  return (
    <Page title={texts.users} lead={texts.peopleWhoSignInTo}
      actions={<>
        <Button needs="inviteEndUser" onClick={() => setInvites(true)}>{texts.inviteUser}</Button>
        <Button needs="createEndUser" look="primary" onClick={() => setCreates(true)}>{texts.createUser}</Button>
      </>}>
      <FilterBar>
        <FilterField label={texts.search} value={search} placeholder={texts.addressNumberOrUUID}
          onChange={(next) => setFilters({ search: next, page: '' })} />
        <SelectField label={texts.order} value={sort} onChange={(e) => setFilters({ sort: e.target.value, page: '' })}>
          {Object.entries(sorts).map(([name, s]) => (
            <option key={name} value={name === 'newest' ? '' : name}>{s.text}</option>
          ))}
        </SelectField>
      </FilterBar>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={search === '' ? texts.noUserYet : texts.noUserMatchesTheSearch}
            action={<Button needs="createEndUser" look="primary" onClick={() => setCreates(true)}>{texts.createUser}</Button>}>
            {texts.usersSignUpThroughYour}
          </Empty>
        ) : (
          <>
            <Table label={texts.users} rows={content} keyOf={(u) => u.uuid}
              onOpen={(u) => void navigate({ to: `/projects/${project}/users/${u.uuid}` })}
              columns={[
                { title: texts.user, cell: (u) => (
                  <Link to={`/projects/${project}/users/${u.uuid}` as string}>{titleOf(u)}</Link>
                ) },
                { title: texts.state, cell: (u) => <AccountBadges account={u} /> },
                { title: texts.lastSignIn, cell: (u) => <Time at={u.lastSignInAt} />, narrow: true },
                { title: texts.created, cell: (u) => <Time at={u.createdAt} />, narrow: true },
              ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: n === 1 ? '' : String(n) })} />
          </>
        )}
      </Loaded>
      {invites && <InviteEndUser project={project} onClose={() => setInvites(false)} />}
      {creates && <NewEndUser project={project} onClose={() => setCreates(false)} />}
    </Page>
  )
}

/** What is particular about an account, in a word each. */
export function AccountBadges({ account: a }: { account: Account }) {
  const banned = a.bannedUntil !== null && Date.parse(a.bannedUntil) > Date.now()
  const confirmed = a.emailConfirmedAt !== null || a.phoneConfirmedAt !== null

  return (
    <>
      {a.deletedAt !== null && <Badge tone="danger">{texts.deleted}</Badge>}{' '}
      {banned && <Badge tone="danger">{texts.banned}</Badge>}{' '}
      {!a.isAnonymous && !confirmed && <Badge tone="warning">{texts.unconfirmed}</Badge>}{' '}
      {a.isAnonymous && <Badge>{texts.anonymous}</Badge>}{' '}
      {a.hasSecondFactor && <Badge tone="success">{texts.secondFactor}</Badge>}{' '}
      {confirmed && !banned && a.deletedAt === null && <Badge tone="success">{texts.active}</Badge>}
    </>
  )
}
