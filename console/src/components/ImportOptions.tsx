import { CheckField, SelectField, TextField } from './Field'
import css from './ImportDialog.module.css'

export interface Options {
  format: string
  skip: boolean
  mode: string
  conflict: string
  delimiter: string
  encoding: string
  decimal: string
  null: string
  sheet: string
  header: boolean
  headerLine: string
}

export const noOptions: Options = {
  format: '', skip: false, mode: 'insert', conflict: '', delimiter: '', encoding: '', decimal: '', null: '', sheet: '',
  header: true, headerLine: '',
}

/** Returns the options as the API's query, without those that are its defaults. */
export function queryOf(o: Options, existing: boolean): Record<string, string> {
  const isText = o.format === 'csv' || o.format === 'tsv' || o.format === ''
  const given: Record<string, string> = {
    format: o.format,
    on_error: o.skip ? 'skip' : '',
    mode: existing && o.mode !== 'insert' ? o.mode : '',
    on_conflict: existing && o.mode !== 'insert' ? o.conflict : '',
    delimiter: isText ? o.delimiter : '',
    encoding: isText ? o.encoding : '',
    null: isText ? o.null : '',
    decimal: o.decimal,
    sheet: o.format === 'xlsx' ? o.sheet : '',
    header: o.header ? '' : 'false',
    header_line: o.headerLine,
  }

  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
}

/** How the file is read; the server finds out what is left open. */
export function ImportOptions({ options, existing, onChange }: {
  options: Options
  existing: boolean
  onChange: (options: Options) => void
}) {
  const set = (members: Partial<Options>) => onChange({ ...options, ...members })
  const isText = options.format === 'csv' || options.format === 'tsv' || options.format === ''

  return (
    <>
      <CheckField label="Leave out rows that cannot be stored" checked={options.skip} onChange={(e) => set({ skip: e.target.checked })}
        hint="Otherwise one such row ends the import, and nothing is stored." />
      {existing && (
        <SelectField label="Rows whose key exists already" value={options.mode} onChange={(e) => set({ mode: e.target.value })}>
          <option value="insert">Are rejected</option>
          <option value="upsert">Are replaced by those of the file</option>
          <option value="ignore">Stay as they are</option>
        </SelectField>
      )}
      {existing && options.mode !== 'insert' && (
        <TextField label="Columns of that key" value={options.conflict} placeholder="The primary key"
          onChange={(e) => set({ conflict: e.target.value })} />
      )}
      <details>
        <summary>How the file is read</summary>
        <div className={css.options}>
          <SelectField label="Format" value={options.format} onChange={(e) => set({ format: e.target.value })}>
            <option value="">By its content type</option>
            {['csv', 'tsv', 'json', 'jsonl', 'xlsx'].map((f) => <option key={f} value={f}>{f.toUpperCase()}</option>)}
          </SelectField>
          {isText && (
            <>
              <TextField label="Delimiter" maxLength={1} value={options.delimiter} placeholder="By the header"
                onChange={(e) => set({ delimiter: e.target.value })} />
              <SelectField label="Encoding" value={options.encoding} onChange={(e) => set({ encoding: e.target.value })}>
                <option value="">UTF-8</option>
                {['utf-16', 'windows-1252', 'iso-8859-1'].map((e) => <option key={e}>{e}</option>)}
              </SelectField>
              <TextField label="Text that means null" maxLength={20} value={options.null} placeholder="Nothing"
                onChange={(e) => set({ null: e.target.value })} />
            </>
          )}
          {options.format === 'xlsx' && (
            <TextField label="Sheet" maxLength={31} value={options.sheet} placeholder="The first" onChange={(e) => set({ sheet: e.target.value })} />
          )}
          <SelectField label="Numbers" value={options.decimal} onChange={(e) => set({ decimal: e.target.value })}>
            <option value="">By the values</option>
            <option value="point">1,234.5</option>
            <option value="comma">1.234,5</option>
          </SelectField>
          <TextField label="Line of the column names" inputMode="numeric" value={options.headerLine} placeholder="The first"
            onChange={(e) => set({ headerLine: e.target.value.replace(/\D/g, '') })} />
          <CheckField label="A line names the columns" checked={options.header} onChange={(e) => set({ header: e.target.checked })} />
        </div>
      </details>
    </>
  )
}
