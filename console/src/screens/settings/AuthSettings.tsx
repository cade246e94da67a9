import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/settings'
import { api, read, type Schemas } from '../../api/client'
import { Loaded } from '../../components/States'
import { Tabs } from '../../components/Tabs'
import { queries } from '../../queries'
import { useURLState } from '../../url'
import { objectBody, testNumbers, type AuthBody } from './authBody'
import {
  addressSpecs, captchaSpecs, hookSpecs, limitSpecs, mailLimitSpecs, oauthSpecs, sessionSpecs, signInSpecs, smsSpecs,
  smtpSpecs, subjects, webauthnSpecs,
} from './authSpecs'
import { MailTexts } from './MailTexts'
import { Providers } from './Providers'
import { SettingsForm } from '../../components/SettingsForm'
import { requestNames, type Spec, type Values } from '../../components/specs'

export interface SubjectProps {
  settings: Schemas['AuthSettings']
  update: (body: AuthBody) => Promise<void>
}

/** How users of the application sign up and in, one subject at a time. */
export function AuthSettings({ project }: { project: string }) {
  const [subject] = useURLState('subject', 'sign-in')
  const query = useQuery({
    queryKey: ['auth settings', project],
    queryFn: () => read(api.GET('/projects/{projectUUID}/auth-settings', { params: { path: { projectUUID: project } } })),
  })

  async function update(body: AuthBody) {
    await read(api.PUT('/projects/{projectUUID}/auth-settings', { params: { path: { projectUUID: project } }, body }))
    await queries.invalidateQueries({ queryKey: ['auth settings', project] })
  }

  return (
    <>
      <Tabs label={texts.subjects} tabs={subjects.map(({ id, text }) => ({
        text, active: id === subject, to: '.', search: { tab: 'auth', ...(id !== 'sign-in' && { subject: id }) } as never,
      }))} />
      <Loaded query={query}>
        {({ content }) => <Subject key={subject} subject={subject} settings={content} update={update} />}
      </Loaded>
    </>
  )
}

function Subject({ subject, settings, update }: SubjectProps & { subject: string }) {
  const flat = requestNames(settings)
  const secrets = settings.secretNames.map((name) => `secrets.${name}`)
  const form = (title: string, specs: Spec[]) => (
    <SettingsForm needs="updateAuthSettings" title={title} specs={specs} values={flat} save={update} />
  )
  const object = (title: string, name: keyof AuthBody, specs: Spec[], current: object, lead?: string) => (
    <SettingsForm needs="updateAuthSettings" title={title} specs={specs} values={current as Values} secrets={secrets}
      {...(lead !== undefined && { lead })} save={(changed) => update(objectBody(name, current, changed))} />
  )

  switch (subject) {
    case 'addresses':
      return form(texts.addresses, addressSpecs)
    case 'sessions':
      return form(texts.sessions, sessionSpecs)
    case 'providers':
      return <Providers settings={settings} update={update} />
    case 'mail':
      return (
        <>
          {object(texts.mailServer, 'smtp', smtpSpecs, settings.smtp)}
          <MailTexts settings={settings} update={update} />
          {form(texts.mailLimits, mailLimitSpecs)}
        </>
      )
    case 'phone':
      return <Phone settings={settings} update={update} />
    case 'passkeys':
      return object(texts.passkeys, 'webauthn', webauthnSpecs, settings.webauthn)
    case 'limits':
      return (
        <>
          {object(texts.captcha, 'captcha', captchaSpecs, settings.captcha)}
          {form(texts.limits, limitSpecs)}
        </>
      )
    case 'hooks':
      return object(texts.hooks, 'hooks', hookSpecs, settings.hooks,
        texts.whatTakesPartInSignUp)
    case 'oauth':
      return object(texts.oAuthServer, 'oauth_server', oauthSpecs, settings.oauthServer)
    default:
      return form(texts.signUpAndSignIn, signInSpecs)
  }
}

function Phone({ settings, update }: SubjectProps) {
  const lines = Object.entries(settings.sms.test_numbers ?? {}).map(([number, code]) => `${number}=${code}`)
  const secrets = settings.secretNames.map((name) => `secrets.${name}`)

  return (
    <SettingsForm needs="updateAuthSettings" title={texts.phoneNumbersAndTextMessages} specs={smsSpecs} secrets={secrets}
      values={{ ...settings.sms, sender: settings.sms.sender ?? 'mailbox', test_numbers: lines }}
      save={(changed) => update(objectBody('sms', settings.sms, {
        ...changed,
        ...('test_numbers' in changed && { test_numbers: testNumbers(changed.test_numbers) }),
      }))} />
  )
}
