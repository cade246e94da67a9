import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/endusers'
import { api, read, type Schemas } from '../../api/client'
import { Copyable, Time } from '../../components/Bits'
import { Button, ButtonLink } from '../../components/Button'
import { Details } from '../../components/Details'
import { Confirm } from '../../components/Dialog'
import { Card, Page, Row } from '../../components/Page'
import { Loaded } from '../../components/States'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { Access } from './Access'
import { AccountBadges } from './EndUsers'
import { EditProfile } from './EditProfile'
import { Metadata } from './Metadata'
import { Factors, Passkeys, Identities, Sessions } from './SignIns'
import { titleOf } from './account'

type Account = Schemas['Account']

/** One user of the project's application. */
export function EndUser() {
  const { project, user } = useParams({ strict: false }) as { project: string; user: string }
  const query = useQuery({
    queryKey: ['end-users', project, 'one', user],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}', {
      params: { path: { projectUUID: project, endUserUUID: user } },
    })),
  })

  return (
    <Page title={query.data === undefined ? texts.user : titleOf(query.data.content)}
      actions={<ButtonLink to={`/projects/${project}/users` as string}>{texts.allUsers}</ButtonLink>}>
      <Loaded query={query}>
        {({ content }) => (
          <>
            <Profile project={project} account={content} />
            <Access project={project} account={content} />
            <Metadata project={project} account={content} />
            <Sessions project={project} user={user} />
            <Factors project={project} user={user} />
            <Passkeys project={project} user={user} />
            <Identities project={project} user={user} />
            <Deletion project={project} account={content} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Profile({ project, account: a }: { project: string; account: Account }) {
  const [edits, setEdits] = useState(false)

  return (
    <Card title={texts.profile} actions={<Button needs="updateEndUser" onClick={() => setEdits(true)}>{texts.editProfile}</Button>}>
      <Details entries={[
        [texts.state, <AccountBadges account={a} />],
        ['UUID', <Copyable value={a.uuid} label={texts.uuid} />],
        [texts.address, a.email === '' ? 'none' : a.email],
        [texts.addressConfirmed, a.email === '' ? undefined : <Time at={a.emailConfirmedAt} />],
        [texts.phoneNumber, a.phone === '' ? 'none' : `+${a.phone}`],
        [texts.numberConfirmed, a.phone === '' ? undefined : <Time at={a.phoneConfirmedAt} />],
        [texts.roleInTheRowsAPI, <code>{a.role}</code>],
        [texts.lastSignIn, <Time at={a.lastSignInAt} />],
        [texts.invited, a.invitedAt === null ? undefined : <Time at={a.invitedAt} />],
        [texts.created, <Time at={a.createdAt} />],
        [texts.changed, <Time at={a.updatedAt} />],
      ]} />
      {edits && <EditProfile project={project} account={a} onClose={() => setEdits(false)} />}
    </Card>
  )
}

function Deletion({ project, account }: { project: string; account: Account }) {
  const navigate = useNavigate()
  const [asks, setAsks] = useState(false)
  const name = titleOf(account)

  async function remove() {
    await read(api.DELETE('/projects/{projectUUID}/end-users/{endUserUUID}', {
      params: { path: { projectUUID: project, endUserUUID: account.uuid } },
    }))
    toast(texts.userNameIsDeleted(name))
    await navigate({ to: `/projects/${project}/users` })
    await queries.invalidateQueries({ queryKey: ['end-users', project] })
  }

  return (
    <Card title={texts.deleteUser} lead={texts.rowsThatReferToThe}>
      <Row>
        <Button needs="deleteEndUser" look="danger" onClick={() => setAsks(true)}>{texts.deleteUser}</Button>
      </Row>
      {asks && (
        <Confirm title={texts.deleteThisUser} open onClose={() => setAsks(false)} action={texts.deleteUser} name={name}
          onSubmit={remove}>
          <p>
            {texts.theAccountOfItsSessions(name, <code>auth.users</code>, <code>on delete cascade</code>)}
          </p>
        </Confirm>
      )}
    </Card>
  )
}
