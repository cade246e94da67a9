import { useState } from 'react'
import { texts } from '#texts/requests'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { SelectField, TextField } from '../../components/Field'
import { FilterBar, FilterField } from '../../components/Filters'
import { filterNames, isUUID, type Filters } from './request'
import css from './Requests.module.css'

const statuses = ['2xx', '3xx', '4xx', '5xx', '401', '403', '404', '409', '422', '429', '500', '504']
const interfaces = {
  '': texts.all, '/rest/v1': texts.rows, '/rest/v1/rpc': texts.functions, '/storage/v1': texts.files, '/auth/v1': 'Sign-in',
}
const times = { '': texts.anyTime, '15m': '15 minutes', '1h': texts.anHour, '24h': 'A day', '7d': 'A week' }

/** Narrows the list of requests. The rarer filters open with "More". */
export function RequestFilters({ filters: f, setFilters, onFind }: {
  filters: Filters
  setFilters: (patch: Partial<Filters>) => void
  onFind: (uuid: string) => void
}) {
  const rare = [f.function, f.role, f.user, f.from, f.to].some((v) => v !== '')
  const [more, setMore] = useState(rare)
  const [finds, setFinds] = useState(false)
  const select = (label: string, name: keyof Filters, options: Record<string, string>) => (
    <SelectField label={label} value={f[name]} onChange={(e) => setFilters({ [name]: e.target.value })}>
      {Object.entries(options).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
    </SelectField>
  )
  const text = (label: string, name: keyof Filters, placeholder?: string) => (
    <FilterField label={label} value={f[name]} onChange={(next) => setFilters({ [name]: next.trim() })}
      {...(placeholder !== undefined && { placeholder })} />
  )

  return (
    <>
      <FilterBar>
        {select(texts.status, 'status', { '': texts.all, ...Object.fromEntries(statuses.map((s) => [s, s])) })}
        {select(texts.interface, 'route', f.route in interfaces ? interfaces : { ...interfaces, [f.route]: f.route })}
        {select(texts.method, 'method', { '': texts.all, ...Object.fromEntries(['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE'].map((m) => [m, m])) })}
        {text(texts.tableOrView, 'table', 'books')}
        {text(texts.codeOfTheFailure, 'code', '42501')}
        {select(texts.time, 'since', times)}
        {more && (
          <>
            {text(texts.function, 'function')}
            {text(texts.startOfTheRoute, 'route', '/storage/v1')}
            {select(texts.role, 'role', { '': texts.all, anon: 'anon', authenticated: 'authenticated', service_role: 'service_role' })}
            {text(texts.uuidOfTheCaller, 'user')}
            {select(texts.kindOfTheCaller, 'userKind', { '': texts.userOfTheApplication, platform: texts.member, key: texts.key })}
            {f.since === '' && (
              <>
                <TextField label={texts.from} type="datetime-local" value={f.from} onChange={(e) => setFilters({ from: e.target.value })} />
                <TextField label={texts.to} type="datetime-local" value={f.to} onChange={(e) => setFilters({ to: e.target.value })} />
              </>
            )}
          </>
        )}
        <div className={css.buttons}>
          <Button aria-expanded={more} onClick={() => setMore(!more)}>{more ? texts.fewerFilters : texts.moreFilters}</Button>
          <Button onClick={() => setFinds(true)}>{texts.findById}</Button>
          {filterNames.some((n) => f[n] !== '') && (
            <Button look="quiet" onClick={() => setFilters(Object.fromEntries(filterNames.map((n) => [n, ''])))}>{texts.removeFilters}</Button>
          )}
        </div>
      </FilterBar>
      {finds && <FindRequest onFind={onFind} onClose={() => setFinds(false)} />}
    </>
  )
}

function FindRequest({ onFind, onClose }: { onFind: (uuid: string) => void; onClose: () => void }) {
  const [id, setID] = useState('')

  return (
    <FormDialog title={texts.findARequest} open onClose={onClose} action={texts.showRequest} disabled={!isUUID(id.trim())}
      onSubmit={async () => onFind(id.trim())}>
      <TextField label={texts.id} value={id} autoFocus spellCheck={false} onChange={(e) => setID(e.target.value)}
        hint={texts.fromTheHeaderXRequest} />
    </FormDialog>
  )
}
