import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { ApiError, api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { CheckField, TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import css from './Admin.module.css'

type Setting = Schemas['Setting']

const changed = () => queries.invalidateQueries({ queryKey: ['instance settings'] })

/** Settings that take effect at once on every server. */
export function InstanceSettings() {
  const [edited, setEdited] = useState<Setting>()
  const query = useQuery({ queryKey: ['instance settings'], queryFn: () => read(api.GET('/admin/settings')) })

  async function reset(setting: Setting) {
    try {
      await read(api.DELETE('/admin/settings/{settingName}', { params: { path: { settingName: setting.name } } }))
      await changed()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  return (
    <Card title="Settings" lead="They take effect on every server with the next request, and override the environment.">
      <Loaded query={query} rows={10}>
        {({ content }) => (
          <Table label="Instance settings" rows={content} keyOf={(s) => s.name} columns={[
            { title: 'Setting', cell: (s) => (
              <div className={css.meaning}>
                <code>{s.name}</code>
                <p>{s.meaning}</p>
                <p className={css.onPhone}>Value: {valueText(s.value)}</p>
              </div>
            ) },
            { title: 'Value', cell: (s) => (
              <>{valueText(s.value)} {s.updatedAt !== null && <Badge tone="warning">changed</Badge>}</>
            ), narrow: true },
            { title: 'Default', cell: (s) => valueText(s.default), narrow: true },
            { title: 'Set', cell: (s) => <Time at={s.updatedAt} />, narrow: true },
            { title: '', align: 'right', cell: (s) => (
              <>
                <Button aria-label={`Change ${s.name}`} onClick={() => setEdited(s)}>Change</Button>{' '}
                {s.updatedAt !== null && (
                  <Button aria-label={`Reset ${s.name}`} onClick={() => void reset(s)}>Reset</Button>
                )}
              </>
            ) },
          ]} />
        )}
      </Loaded>
      {edited && <ChangeSetting setting={edited} onClose={() => setEdited(undefined)} />}
    </Card>
  )
}

function ChangeSetting({ setting, onClose }: { setting: Setting; onClose: () => void }) {
  const [value, setValue] = useState(setting.value)
  const [failure, setFailure] = useState<string>()
  const limits = setting.minimum !== null && setting.maximum !== null
    ? `${setting.minimum.toLocaleString()} to ${setting.maximum.toLocaleString()}. ` : ''

  async function save() {
    setFailure(undefined)
    try {
      await read(api.PUT('/admin/settings/{settingName}', {
        params: { path: { settingName: setting.name } },
        body: { value: setting.type === 'boolean' ? value === true : Number(value) },
      }))
      await changed()
    } catch (error) {
      if (error instanceof ApiError) setFailure(error.field('value'))
      throw error
    }
  }

  return (
    <FormDialog title={setting.name} open onClose={onClose} action="Change setting" onSubmit={save}>
      <p>{setting.meaning}</p>
      {setting.type === 'boolean' ? (
        <CheckField label="On" checked={value === true} hint={`Default: ${valueText(setting.default)}.`}
          onChange={(e) => setValue(e.target.checked)} />
      ) : (
        <TextField label="Value" type="number" step={1} required autoFocus value={String(value)} error={failure}
          hint={`${limits}Default: ${valueText(setting.default)}.`} onChange={(e) => setValue(e.target.value)} />
      )}
    </FormDialog>
  )
}

function valueText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  return typeof value === 'number' ? value.toLocaleString() : String(value)
}
