import { texts } from '#texts/components'
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
      <CheckField label={texts.leaveOutRowsThatCannot} checked={options.skip} onChange={(e) => set({ skip: e.target.checked })}
        hint={texts.otherwiseOneSuchRowEnds} />
      {existing && (
        <SelectField label={texts.rowsWhoseKeyExistsAlready} value={options.mode} onChange={(e) => set({ mode: e.target.value })}>
          <option value="insert">{texts.areRejected}</option>
          <option value="upsert">{texts.areReplacedByThoseOf}</option>
          <option value="ignore">{texts.stayAsTheyAre}</option>
        </SelectField>
      )}
      {existing && options.mode !== 'insert' && (
        <TextField label={texts.columnsOfThatKey} value={options.conflict} placeholder={texts.thePrimaryKey}
          onChange={(e) => set({ conflict: e.target.value })} />
      )}
      <details>
        <summary>{texts.howTheFileIsRead}</summary>
        <div className={css.options}>
          <SelectField label={texts.format} value={options.format} onChange={(e) => set({ format: e.target.value })}>
            <option value="">{texts.byItsContentType}</option>
            {['csv', 'tsv', 'json', 'jsonl', 'xlsx'].map((f) => <option key={f} value={f}>{f.toUpperCase()}</option>)}
          </SelectField>
          {isText && (
            <>
              <TextField label={texts.delimiter} maxLength={1} value={options.delimiter} placeholder={texts.byTheHeader}
                onChange={(e) => set({ delimiter: e.target.value })} />
              <SelectField label={texts.encoding} value={options.encoding} onChange={(e) => set({ encoding: e.target.value })}>
                <option value="">{texts.utfEight}</option>
                {['utf-16', 'windows-1252', 'iso-8859-1'].map((e) => <option key={e}>{e}</option>)}
              </SelectField>
              <TextField label={texts.textThatMeansNull} maxLength={20} value={options.null} placeholder={texts.nothing}
                onChange={(e) => set({ null: e.target.value })} />
            </>
          )}
          {options.format === 'xlsx' && (
            <TextField label={texts.sheet} maxLength={31} value={options.sheet} placeholder={texts.theFirst} onChange={(e) => set({ sheet: e.target.value })} />
          )}
          <SelectField label={texts.numbers} value={options.decimal} onChange={(e) => set({ decimal: e.target.value })}>
            <option value="">{texts.byTheValues}</option>
            <option value="point">1,234.5</option>
            <option value="comma">1.234,5</option>
          </SelectField>
          <TextField label={texts.lineOfTheColumnNames} inputMode="numeric" value={options.headerLine} placeholder={texts.theFirst}
            onChange={(e) => set({ headerLine: e.target.value.replace(/\D/g, '') })} />
          <CheckField label={texts.aLineNamesTheColumns} checked={options.header} onChange={(e) => set({ header: e.target.checked })} />
        </div>
      </details>
    </>
  )
}
