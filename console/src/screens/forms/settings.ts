/** What a person types about a form's settings, and the change that it makes. */

import type { Schemas } from '../../api/client'

type Body = Schemas['UpdateFormBody']

export interface SettingsDraft {
  name: string
  description: string
  state: string
  opensAt: string // of an input of type datetime-local
  closesAt: string
  maxResponses: string
  successMessage: string
  redirectURL: string
  container: string
  notifyEmails: string // one a line
  embedOrigins: string
  honeypot: string
  color: string
  logo: string
}

export function settingsOf(f: Schemas['FullForm']): SettingsDraft {
  return {
    name: f.name, description: f.description ?? '', state: f.state, opensAt: localTime(f.opensAt), closesAt: localTime(f.closesAt),
    maxResponses: f.maxResponses === null ? '' : String(f.maxResponses), successMessage: f.successMessage ?? '',
    redirectURL: f.redirectUrl ?? '', container: f.containerUuid ?? '', notifyEmails: f.notifyEmails.join('\n'),
    embedOrigins: f.embedOrigins.join('\n'), honeypot: f.honeypot ?? '', color: f.color ?? '', logo: f.logoUuid ?? '',
  }
}

/** Returns the members that differ from before. */
export function settingsPatch(before: SettingsDraft, after: SettingsDraft): Body {
  const text = (value: string) => (value === '' ? null : value)
  const lines = (value: string) => value.split('\n').map((l) => l.trim()).filter((l) => l !== '')
  const all: Record<keyof SettingsDraft, Body> = {
    name: { name: after.name },
    description: { description: text(after.description) },
    state: { state: after.state },
    opensAt: { opens_at: instant(after.opensAt) },
    closesAt: { closes_at: instant(after.closesAt) },
    maxResponses: { max_responses: after.maxResponses === '' ? null : Number(after.maxResponses) },
    successMessage: { success_message: text(after.successMessage) },
    redirectURL: { redirect_url: text(after.redirectURL) },
    container: { container_uuid: text(after.container) },
    notifyEmails: { notify_emails: lines(after.notifyEmails) },
    embedOrigins: { embed_origins: lines(after.embedOrigins) },
    honeypot: { honeypot: text(after.honeypot) },
    color: { color: text(after.color) },
    logo: { logo_uuid: text(after.logo) },
  }
  const changed = (Object.keys(all) as (keyof SettingsDraft)[]).filter((k) => before[k] !== after[k])

  return Object.assign({}, ...changed.map((k) => all[k])) as Body
}

/** Returns a time as an input of type datetime-local has it, in the person's zone. */
export function localTime(at: string | null): string {
  if (at === null) return ''

  const t = new Date(at)
  const two = (n: number) => String(n).padStart(2, '0')

  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}T${two(t.getHours())}:${two(t.getMinutes())}`
}

function instant(local: string): string | null {
  return local === '' ? null : new Date(local).toISOString()
}
