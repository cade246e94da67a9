import { texts } from '#texts/structure'
import { Code } from '../../components/Bits'
import type { Change } from './ddl'
import css from './Structure.module.css'

/** Shows the SQL of a change before it runs, with the lock that it takes. */
export function SQLPreview({ change }: { change: Change }) {
  if (change.sql === '') return null

  return (
    <div className={css.preview}>
      <h3>{texts.asSQL}</h3>
      <Code text={change.sql} label={texts.sqlOfTheChange} />
      <p className={css.quiet}>{change.lock}</p>
    </div>
  )
}
