import { useState } from 'react'
import type { Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextArea, TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { Empty } from '../../components/States'
import { Table } from '../../components/Table'
import type { SubjectProps } from './AuthSettings'
import { providerNames } from './authSpecs'

type Provider = Schemas['Provider']

interface Edited {
  name: string
  isNew: boolean
  provider: Provider
}

/** Identity providers, such as Google and GitHub. */
export function Providers({ settings, update }: SubjectProps) {
  const [edited, setEdited] = useState<Edited>()
  const [removed, setRemoved] = useState<string>()
  const rows = Object.entries(settings.providers).sort(([a], [b]) => a.localeCompare(b))
  const add = (
    <Button look="primary" onClick={() => setEdited({ name: '', isNew: true, provider: { enabled: true } })}>
      Add provider
    </Button>
  )

  return (
    <Card title="Identity providers" lead="Users sign in with their accounts at these providers." actions={add}>
      {rows.length === 0 ? (
        <Empty title="No provider yet" action={add}>
          Register an application at the provider, then enter its client ID and secret here.
        </Empty>
      ) : (
        <Table label="Identity providers" rows={rows} keyOf={([name]) => name} columns={[
          { title: 'Name', cell: ([name]) => name },
          { title: 'Status', cell: ([, p]) => (
            <Badge tone={p.enabled ? 'success' : 'neutral'}>{p.enabled ? 'on' : 'off'}</Badge>
          ) },
          { title: 'Client ID', cell: ([, p]) => p.client_id, narrow: true },
          { title: 'Secret', cell: ([name]) => settings.secretNames.includes(`providers.${name}`) ? 'set' : 'not set',
            narrow: true },
          { title: '', align: 'right', cell: ([name, provider]) => (
            <>
              <Button aria-label={`Edit ${name}`} onClick={() => setEdited({ name, isNew: false, provider })}>Edit</Button>{' '}
              <Button look="danger" aria-label={`Remove ${name}`} onClick={() => setRemoved(name)}>Remove</Button>
            </>
          ) },
        ]} />
      )}
      {edited && (
        <ProviderForm edited={edited} settings={settings} update={update} onClose={() => setEdited(undefined)} />
      )}
      {removed !== undefined && (
        <Confirm title="Remove provider" open action="Remove provider" onClose={() => setRemoved(undefined)}
          onSubmit={() => {
            const { [removed]: _, ...others } = settings.providers
            return update({ providers: others, secrets: { [`providers.${removed}`]: '' } })
          }}>
          Nobody signs in with <b>{removed}</b> any more. Its client ID and secret are forgotten. Users who have only this
          way in need another one.
        </Confirm>
      )}
    </Card>
  )
}

const other = 'custom:'

function ProviderForm({ edited, settings, update, onClose }: SubjectProps & { edited: Edited; onClose: () => void }) {
  const [name, setName] = useState(edited.name)
  const [provider, setProvider] = useState(edited.provider)
  const [secret, setSecret] = useState('')
  const free = providerNames.filter((n) => settings.providers[n] === undefined)
  const isSet = settings.secretNames.includes(`providers.${name}`)
  const edit = (change: Provider) => setProvider({ ...provider, ...change })

  return (
    <FormDialog title={edited.isNew ? 'New provider' : `Provider ${edited.name}`} open onClose={onClose}
      action="Save provider" disabled={name === '' || name === other} onSubmit={() => update({
        providers: { ...settings.providers, [name]: provider },
        ...(secret !== '' && { secrets: { [`providers.${name}`]: secret } }),
      })}>
      {edited.isNew && (
        <SelectField label="Provider" required value={name.startsWith(other) ? other : name}
          onChange={(e) => setName(e.target.value)}>
          <option value="">Choose one</option>
          {free.map((n) => <option key={n} value={n}>{n}</option>)}
          <option value={other}>another one of OpenID Connect</option>
        </SelectField>
      )}
      {edited.isNew && name.startsWith(other) && (
        <TextField label="Name" required value={name.slice(other.length)} hint="Its name in the API is custom: and this."
          onChange={(e) => setName(other + e.target.value)} />
      )}
      <CheckField label="On" checked={provider.enabled ?? false} onChange={(e) => edit({ enabled: e.target.checked })} />
      <TextField label="Client ID" value={provider.client_id ?? ''} autoComplete="off"
        hint="Id of the application at the provider, and audience of its ID tokens."
        onChange={(e) => edit({ client_id: e.target.value })} />
      <TextField label="Client secret" type="password" autoComplete="off" value={secret}
        placeholder={isSet ? 'Set. Type a new one to replace it' : 'Not set'} onChange={(e) => setSecret(e.target.value)} />
      <TextField label="Address" type="url" value={provider.url ?? ''}
        hint="Issuer of keycloak, azure and custom providers; address of an own GitHub or GitLab. Otherwise empty."
        onChange={(e) => edit({ url: e.target.value })} />
      <TextArea label="Other client IDs" rows={2} value={(provider.other_client_ids ?? []).join('\n')}
        hint="More audiences, such as those of mobile apps, one a line."
        onChange={(e) => edit({ other_client_ids: e.target.value === '' ? [] : e.target.value.split('\n') })} />
      <CheckField label="Accept ID tokens without their nonce" checked={provider.skip_nonce ?? false}
        onChange={(e) => edit({ skip_nonce: e.target.checked })} />
    </FormDialog>
  )
}
