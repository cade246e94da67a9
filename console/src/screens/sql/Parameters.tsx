import { texts } from '#texts/sql'
import { inputClass } from '../../components/Field'
import css from './SQL.module.css'

/** The values of $1, $2 … They are not in the history. */
export function Parameters({ values, onChange }: {
  values: (string | null)[]
  onChange: (values: (string | null)[]) => void
}) {
  const set = (at: number, value: string | null) => onChange(values.map((v, i) => (i === at ? value : v)))

  return (
    <div className={css.parameters} role="group" aria-label={texts.parameters}>
      {values.map((value, i) => (
        <span key={i} className={css.parameter}>
          <code>${i + 1}</code>
          <input className={inputClass} aria-label={texts.valueOfI(i + 1)} value={value ?? ''} disabled={value === null}
            placeholder={value === null ? 'null' : ''} onChange={(e) => set(i, e.target.value)} />
          <label>
            <input type="checkbox" checked={value === null} onChange={(e) => set(i, e.target.checked ? null : '')} />{' '}{texts.null}
          </label>
        </span>
      ))}
    </div>
  )
}
