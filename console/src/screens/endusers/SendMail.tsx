import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { texts } from '#texts/endusers'
import { api, read, type Schemas } from '../../api/client'
import { FormDialog } from '../../components/Dialog'
import { SelectField, TextArea, TextField } from '../../components/Field'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { parseMembers } from './account'

type Account = Schemas['Account']

const redirectHint = texts.aPageOfYourApplication

/** Mails a user a link, as if the user had asked for it. */
export function SendMail({ project, account, onClose }: { project: string; account: Account; onClose: () => void }) {
  const isConfirmed = account.emailConfirmedAt !== null || account.phoneConfirmedAt !== null
  const [kind, setKind] = useState<'recovery' | 'magic_link' | 'confirmation'>(isConfirmed ? 'recovery' : 'confirmation')
  const [redirect, setRedirect] = useState('')
  const [key] = useState(() => crypto.randomUUID())

  async function send() {
    await read(api.POST('/projects/{projectUUID}/end-users/{endUserUUID}/mails', {
      params: { path: { projectUUID: project, endUserUUID: account.uuid } },
      body: { kind, ...(redirect !== '' && { redirect_to: redirect }) },
      headers: { 'Idempotency-Key': key },
    }))
    toast(texts.aMailToIsOn(account.email))
    await queries.invalidateQueries({ queryKey: ['mails', project] })
  }

  return (
    <FormDialog title={texts.sendMail} open onClose={onClose} action={texts.sendMail} onSubmit={send}>
      <SelectField label={texts.what} value={kind} hint={texts.yourMailTextsAndLimits}
        onChange={(e) => setKind(e.target.value as typeof kind)}>
        <option value="recovery">{texts.aLinkToSetA}</option>
        <option value="magic_link">{texts.aLinkToSignIn}</option>
        {!isConfirmed && <option value="confirmation">{texts.aLinkToConfirmThe}</option>}
      </SelectField>
      <TextField label={texts.pageBehindTheLink} type="url" value={redirect} maxLength={2000} hint={redirectHint}
        placeholder={texts.httpsAppExampleComWelcome} onChange={(e) => setRedirect(e.target.value)} />
    </FormDialog>
  )
}

/** Creates a user who sets the password behind a mailed link. */
export function InviteEndUser({ project, onClose }: { project: string; onClose: () => void }) {
  const navigate = useNavigate()
  const [email, setEmail] = useState('')
  const [redirect, setRedirect] = useState('')
  const [metadata, setMetadata] = useState('')
  const [key] = useState(() => crypto.randomUUID())
  const members = parseMembers(metadata)

  async function invite() {
    if (typeof members === 'string') throw new Error(members)

    const { content } = await read(api.POST('/projects/{projectUUID}/end-users/invite', {
      params: { path: { projectUUID: project } },
      body: {
        email,
        ...(redirect !== '' && { redirect_to: redirect }),
        ...(Object.keys(members).length > 0 && { user_metadata: members }),
      },
      headers: { 'Idempotency-Key': key },
    }))
    toast(texts.anInvitationToIsOn(content.email))
    await queries.invalidateQueries({ queryKey: ['end-users', project] })
    await navigate({ to: `/projects/${project}/users/${content.uuid}` })
  }

  return (
    <FormDialog title={texts.inviteUser} open onClose={onClose} action={texts.sendInvitation} onSubmit={invite}>
      <TextField label={texts.address} type="email" required autoComplete="off" autoFocus value={email} maxLength={254}
        onChange={(e) => setEmail(e.target.value)} />
      <TextField label={texts.pageBehindTheLink} type="url" value={redirect} maxLength={2000} hint={redirectHint}
        placeholder={texts.httpsAppExampleComWelcome} onChange={(e) => setRedirect(e.target.value)} />
      <TextArea label={texts.metadataJSON} value={metadata} placeholder={texts.nameGrace} spellCheck={false}
        error={typeof members === 'string' ? members : undefined} onChange={(e) => setMetadata(e.target.value)} />
    </FormDialog>
  )
}
