import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/admin'
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
    <Card title={texts.settings} lead={texts.theyTakeEffectOnEvery}>
      <Loaded query={query} rows={10}>
        {({ content }) => (
          <Table label={texts.instanceSettings} rows={content} keyOf={(s) => s.name} columns={[
            { title: texts.setting, cell: (s) => (
              <div className={css.meaning}>
                <code>{s.name}</code>
                <p>{s.meaning}</p>
                <p className={css.onPhone}>{texts.value2(valueText(s.value))}</p>
              </div>
            ) },
            { title: texts.value, cell: (s) => (
              <>{valueText(s.value)} {s.updatedAt !== null && <Badge tone="warning">{texts.changed}</Badge>}</>
            ), narrow: true },
            { title: texts.default, cell: (s) => valueText(s.default), narrow: true },
            { title: texts.set2, cell: (s) => <Time at={s.updatedAt} />, narrow: true },
            { title: '', align: 'right', cell: (s) => (
              <>
                <Button aria-label={texts.changeName(s.name)} onClick={() => setEdited(s)}>{texts.change}</Button>{' '}
                {s.updatedAt !== null && (
                  <Button aria-label={texts.resetName(s.name)} onClick={() => void reset(s)}>{texts.reset}</Button>
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
    ? texts.minimumToMaximum(setting.minimum.toLocaleString(), setting.maximum.toLocaleString()) : ''

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
    <FormDialog title={setting.name} open onClose={onClose} action={texts.changeSetting} onSubmit={save}>
      <p>{setting.meaning}</p>
      {setting.type === 'boolean' ? (
        <CheckField label={texts.on} checked={value === true} hint={texts.defaultDefaultName(valueText(setting.default))}
          onChange={(e) => setValue(e.target.checked)} />
      ) : (
        <TextField label={texts.value} type="number" step={1} required autoFocus value={String(value)} error={failure}
          hint={texts.limitsDefaultDefaultName(limits, valueText(setting.default))} onChange={(e) => setValue(e.target.value)} />
      )}
    </FormDialog>
  )
}

function valueText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  return typeof value === 'number' ? value.toLocaleString() : String(value)
}
