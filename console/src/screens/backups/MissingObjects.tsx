import { texts } from '#texts/backups'
import type { Schemas } from '../../api/client'
import css from './Backups.module.css'

/** Objects that PostgreSQL did not create again, with its reasons. */
export function MissingObjects({ missing }: { missing: Schemas['Missing'][] }) {
  if (missing.length === 0) return null

  return (
    <div className={css.warning}>
      <b>{texts.postgreSQLDidNotCreateThese}</b>
      <ul className={css.missing}>
        {missing.map((m) => (
          <li key={m.object + m.statement}>
            <details>
              <summary>{m.object}: {m.error}</summary>
              <code>{m.statement}</code>
            </details>
          </li>
        ))}
      </ul>
    </div>
  )
}
