import { useState } from 'react'
import { texts } from '#texts/settings'
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
      {texts.addProvider}
    </Button>
  )

  return (
    <Card title={texts.identityProviders} lead={texts.usersSignInWithTheir} actions={add}>
      {rows.length === 0 ? (
        <Empty title={texts.noProviderYet} action={add}>
          {texts.registerAnApplicationAtThe}
        </Empty>
      ) : (
        <Table label={texts.identityProviders} rows={rows} keyOf={([name]) => name} columns={[
          { title: texts.name, cell: ([name]) => name },
          { title: texts.status, cell: ([, p]) => (
            <Badge tone={p.enabled ? 'success' : 'neutral'}>{p.enabled ? texts.on : texts.off}</Badge>
          ) },
          { title: texts.clientID, cell: ([, p]) => p.client_id, narrow: true },
          { title: texts.secret, cell: ([name]) => settings.secretNames.includes(`providers.${name}`) ? 'set' : texts.notSet,
            narrow: true },
          { title: '', align: 'right', cell: ([name, provider]) => (
            <>
              <Button aria-label={texts.editName(name)} onClick={() => setEdited({ name, isNew: false, provider })}>{texts.edit}</Button>{' '}
              <Button look="danger" aria-label={texts.removeName(name)} onClick={() => setRemoved(name)}>{texts.remove}</Button>
            </>
          ) },
        ]} />
      )}
      {edited && (
        <ProviderForm edited={edited} settings={settings} update={update} onClose={() => setEdited(undefined)} />
      )}
      {removed !== undefined && (
        <Confirm title={texts.removeProvider} open action={texts.removeProvider} onClose={() => setRemoved(undefined)}
          onSubmit={() => {
            const { [removed]: _, ...others } = settings.providers
            return update({ providers: others, secrets: { [`providers.${removed}`]: '' } })
          }}>
          {texts.nobodySignsInWithAny(<b>{removed}</b>)}
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
    <FormDialog title={edited.isNew ? texts.newProvider : texts.providerName(edited.name)} open onClose={onClose}
      action={texts.saveProvider} disabled={name === '' || name === other} onSubmit={() => update({
        providers: { ...settings.providers, [name]: provider },
        ...(secret !== '' && { secrets: { [`providers.${name}`]: secret } }),
      })}>
      {edited.isNew && (
        <SelectField label={texts.provider} required value={name.startsWith(other) ? other : name}
          onChange={(e) => setName(e.target.value)}>
          <option value="">{texts.chooseOne}</option>
          {free.map((n) => <option key={n} value={n}>{n}</option>)}
          <option value={other}>{texts.anotherOneOfOpenIDConnect}</option>
        </SelectField>
      )}
      {edited.isNew && name.startsWith(other) && (
        <TextField label={texts.name} required value={name.slice(other.length)} hint={texts.itsNameInTheAPI}
          onChange={(e) => setName(other + e.target.value)} />
      )}
      <CheckField label={texts.on2} checked={provider.enabled ?? false} onChange={(e) => edit({ enabled: e.target.checked })} />
      <TextField label={texts.clientID} value={provider.client_id ?? ''} autoComplete="off"
        hint={texts.idOfTheApplicationAt}
        onChange={(e) => edit({ client_id: e.target.value })} />
      <TextField label={texts.clientSecret} type="password" autoComplete="off" value={secret}
        placeholder={isSet ? texts.setTypeANewOne : texts.notSet2} onChange={(e) => setSecret(e.target.value)} />
      <TextField label={texts.address} type="url" value={provider.url ?? ''}
        hint={texts.issuerOfKeycloakAzureAnd}
        onChange={(e) => edit({ url: e.target.value })} />
      <TextArea label={texts.otherClientIDs} rows={2} value={(provider.other_client_ids ?? []).join('\n')}
        hint={texts.moreAudiencesSuchAsThose}
        onChange={(e) => edit({ other_client_ids: e.target.value === '' ? [] : e.target.value.split('\n') })} />
      <CheckField label={texts.acceptIDTokensWithoutTheir} checked={provider.skip_nonce ?? false}
        onChange={(e) => edit({ skip_nonce: e.target.checked })} />
    </FormDialog>
  )
}
