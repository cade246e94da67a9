import { useState } from 'react'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { SelectField, TextField } from '../../components/Field'
import { FilterBar, FilterField } from '../../components/Filters'
import { filterNames, isUUID, type Filters } from './request'
import css from './Requests.module.css'

const statuses = ['2xx', '3xx', '4xx', '5xx', '401', '403', '404', '409', '422', '429', '500', '504']
const interfaces = {
  '': 'All', '/rest/v1': 'Rows', '/rest/v1/rpc': 'Functions', '/storage/v1': 'Files', '/auth/v1': 'Sign-in',
}
const times = { '': 'Any time', '15m': '15 minutes', '1h': 'An hour', '24h': 'A day', '7d': 'A week' }

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
        {select('Status', 'status', { '': 'All', ...Object.fromEntries(statuses.map((s) => [s, s])) })}
        {select('Interface', 'route', f.route in interfaces ? interfaces : { ...interfaces, [f.route]: f.route })}
        {select('Method', 'method', { '': 'All', ...Object.fromEntries(['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE'].map((m) => [m, m])) })}
        {text('Table or view', 'table', 'books')}
        {text('Code of the failure', 'code', '42501')}
        {select('Time', 'since', times)}
        {more && (
          <>
            {text('Function', 'function')}
            {text('Start of the route', 'route', '/storage/v1')}
            {select('Role', 'role', { '': 'All', anon: 'anon', authenticated: 'authenticated', service_role: 'service_role' })}
            {text('UUID of the caller', 'user')}
            {select('Kind of the caller', 'userKind', { '': 'User of the application', platform: 'Member', key: 'Key' })}
            {f.since === '' && (
              <>
                <TextField label="From" type="datetime-local" value={f.from} onChange={(e) => setFilters({ from: e.target.value })} />
                <TextField label="To" type="datetime-local" value={f.to} onChange={(e) => setFilters({ to: e.target.value })} />
              </>
            )}
          </>
        )}
        <div className={css.buttons}>
          <Button aria-expanded={more} onClick={() => setMore(!more)}>{more ? 'Fewer filters' : 'More filters'}</Button>
          <Button onClick={() => setFinds(true)}>Find by id</Button>
          {filterNames.some((n) => f[n] !== '') && (
            <Button look="quiet" onClick={() => setFilters(Object.fromEntries(filterNames.map((n) => [n, ''])))}>Remove filters</Button>
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
    <FormDialog title="Find a request" open onClose={onClose} action="Show request" disabled={!isUUID(id.trim())}
      onSubmit={async () => onFind(id.trim())}>
      <TextField label="Id" value={id} autoFocus spellCheck={false} onChange={(e) => setID(e.target.value)}
        hint="From the header X-Request-Id, or from a failure in an application." />
    </FormDialog>
  )
}
