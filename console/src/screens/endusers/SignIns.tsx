import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/endusers'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { Card } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'

type Session = Schemas['AccountSession']
type Factor = Schemas['AccountFactor']
type Passkey = Schemas['AccountPasskey']

interface Props {
  project: string
  user: string
}

const pathOf = ({ project, user }: Props) => ({ projectUUID: project, endUserUUID: user })

/** Where the user is signed in. */
export function Sessions(props: Props) {
  const [page, setPage] = useState(1)
  const [ended, setEnded] = useState<Session>()
  const query = useQuery({
    queryKey: ['end-users', props.project, 'sessions', props.user, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}/sessions', {
      params: { path: pathOf(props), query: { page, order: 'desc' } },
    })),
  })

  async function end(session: Session) {
    await read(api.DELETE('/projects/{projectUUID}/end-users/{endUserUUID}/sessions/{endUserSessionUUID}', {
      params: { path: { ...pathOf(props), endUserSessionUUID: session.uuid } },
    }))
    toast(texts.theSessionIsEnded)
    await queries.invalidateQueries({ queryKey: ['end-users', props.project, 'sessions'] })
  }

  return (
    <Card title={texts.sessions} lead={texts.whereThisUserIsSigned}>
      <Loaded query={query} rows={1}>
        {({ content, metadata }) => content.length === 0 ? <Empty title={texts.notSignedIn}>{texts.theUserHasNoSession}</Empty> : (
          <>
            <Table label={texts.sessions} rows={content} keyOf={(s) => s.uuid} columns={[
              { title: texts.device, cell: (s) => s.userAgent ?? texts.unknown },
              { title: texts.address, cell: (s) => s.address, narrow: true },
              { title: texts.signedInBy, cell: (s) => (
                <>{s.methods.join(', ')} {s.level !== 'aal1' && <Badge tone="success">{texts.secondFactor}</Badge>}</>
              ) },
              { title: texts.since, cell: (s) => <Time at={s.createdAt} />, narrow: true },
              { title: texts.renewed, cell: (s) => <Time at={s.refreshedAt} />, narrow: true },
              { title: '', align: 'right', cell: (s) => (
                <Button needs="deleteEndUserSession" aria-label={texts.endSessionOfAddress(s.address ?? texts.anUnknownAddress)}
                  onClick={() => setEnded(s)}>{texts.end}</Button>
              ) },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={setPage} />
          </>
        )}
      </Loaded>
      {ended && (
        <Confirm title={texts.endSession} open action={texts.endSession} onClose={() => setEnded(undefined)} onSubmit={() => end(ended)}>
          <p>{texts.theUserHasToSignIn}</p>
        </Confirm>
      )}
    </Card>
  )
}

const factorTypes: Record<Factor['type'], string> = {
  totp: texts.authenticatorApp, phone: texts.textMessage, webauthn: texts.securityKey,
}

/** What the user needs besides the password. */
export function Factors(props: Props) {
  const [removed, setRemoved] = useState<Factor>()
  const query = useQuery({
    queryKey: ['end-users', props.project, 'factors', props.user],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}/factors', { params: { path: pathOf(props) } })),
  })

  async function remove(factor: Factor) {
    await read(api.DELETE('/projects/{projectUUID}/end-users/{endUserUUID}/factors/{factorUUID}', {
      params: { path: { ...pathOf(props), factorUUID: factor.uuid } },
    }))
    toast(texts.theSecondFactorIsRemoved)
    await queries.invalidateQueries({ queryKey: ['end-users', props.project] })
  }

  return (
    <Card title={texts.secondFactors} lead={texts.whatThisUserNeedsBesides}>
      <Loaded query={query} rows={1}>
        {({ content }) => content.length === 0 ? <Empty title={texts.noSecondFactor}>{texts.theUserAddsOneIn}</Empty> : (
          <Table label={texts.secondFactors} rows={content} keyOf={(f) => f.uuid} columns={[
            { title: texts.kind, cell: (f) => factorTypes[f.type] },
            { title: texts.name, cell: (f) => f.name || (f.phone && `+${f.phone}`) },
            { title: texts.state, cell: (f) => f.status === 'verified' ? <Badge tone="success">{texts.inUse}</Badge> : <Badge>{texts.notVerified}</Badge> },
            { title: texts.added, cell: (f) => <Time at={f.createdAt} />, narrow: true },
            { title: '', align: 'right', cell: (f) => (
              <Button needs="deleteEndUserFactor" look="danger" aria-label={texts.removeFactorTypesName(factorTypes[f.type], f.name)}
                onClick={() => setRemoved(f)}>{texts.remove}</Button>
            ) },
          ]} />
        )}
      </Loaded>
      {removed && (
        <Confirm title={texts.removeSecondFactor} open action={texts.removeFactor} onClose={() => setRemoved(undefined)}
          onSubmit={() => remove(removed)}>
          <p>
            {texts.makeSureThatThePerson}
          </p>
        </Confirm>
      )}
    </Card>
  )
}

/** The passkeys by which the user signs in. */
export function Passkeys(props: Props) {
  const [removed, setRemoved] = useState<Passkey>()
  const query = useQuery({
    queryKey: ['end-users', props.project, 'passkeys', props.user],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}/passkeys', { params: { path: pathOf(props) } })),
  })

  async function remove(passkey: Passkey) {
    await read(api.DELETE('/projects/{projectUUID}/end-users/{endUserUUID}/passkeys/{passkeyUUID}', {
      params: { path: { ...pathOf(props), passkeyUUID: passkey.uuid } },
    }))
    toast(texts.thePasskeyIsRemoved)
    await queries.invalidateQueries({ queryKey: ['end-users', props.project, 'passkeys'] })
  }

  return (
    <Card title={texts.passkeys} lead={texts.devicesThatSignThisUserIn}>
      <Loaded query={query} rows={1}>
        {({ content }) => content.length === 0 ? <Empty title={texts.noPasskey}>{texts.theUserRegistersOne}</Empty> : (
          <Table label={texts.passkeys} rows={content} keyOf={(p) => p.uuid} columns={[
            { title: texts.name, cell: (p) => p.name || texts.unnamed },
            { title: texts.added, cell: (p) => <Time at={p.createdAt} />, narrow: true },
            { title: texts.lastUsed, cell: (p) => <Time at={p.lastUsedAt} /> },
            { title: '', align: 'right', cell: (p) => (
              <Button needs="deleteEndUserPasskey" look="danger" aria-label={texts.removePasskeyName(p.name)}
                onClick={() => setRemoved(p)}>{texts.remove}</Button>
            ) },
          ]} />
        )}
      </Loaded>
      {removed && (
        <Confirm title={texts.removePasskey} open action={texts.removePasskey} onClose={() => setRemoved(undefined)}
          onSubmit={() => remove(removed)}>
          <p>{texts.theDeviceNoLongerSignsIn}</p>
        </Confirm>
      )}
    </Card>
  )
}

/** The accounts by which the user signs in. */
export function Identities(props: Props) {
  const query = useQuery({
    queryKey: ['end-users', props.project, 'identities', props.user],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}/identities', {
      params: { path: pathOf(props), query: { limit: 100 } },
    })),
  })

  return (
    <Card title={texts.identities} lead={texts.accountsByWhichThisUser}>
      <Loaded query={query} rows={1}>
        {({ content }) => content.length === 0
          ? <Empty title={texts.noIdentity}>{texts.theUserHasNoAddress}</Empty>
          : (
            <Table label={texts.identities} rows={content} keyOf={(i) => i.uuid} columns={[
              { title: texts.provider, cell: (i) => i.provider },
              { title: texts.idWithTheProvider, cell: (i) => <code>{i.providerId}</code>, narrow: true },
              { title: texts.address, cell: (i) => i.email },
              { title: texts.lastSignIn, cell: (i) => <Time at={i.lastSignInAt} /> },
            ]} />
          )}
      </Loaded>
    </Card>
  )
}
