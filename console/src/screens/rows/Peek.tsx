import { Link } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/rows'
import { Dialog } from '../../components/Dialog'
import { Empty, Loaded } from '../../components/States'
import { shown } from './display'
import { fetchRows } from './pages'
import { useRelation } from './relation'
import { pagePath } from './request'
import type { Reference } from './types'
import css from './Peek.module.css'

/** Shows the row that a foreign key refers to. */
export function Peek({ project, reference, value, as, onClose }: {
  project: string
  reference: Reference
  value: string
  as: string
  onClose: () => void
}) {
  const relation = useRelation(project, reference.table)
  const filter = new URLSearchParams([[reference.column, `eq.${value}`]]).toString()
  const query = useQuery({
    queryKey: ['rows', project, reference.table, 'peek', as, reference.column, value],
    enabled: relation.data !== undefined,
    queryFn: () => {
      const { schema, name, key } = relation.data!
      const filters = [{ column: reference.column, operator: 'eq' as const, value }]
      return fetchRows({ schema, as }, pagePath({ project, schema, name, key, columns: [], nullable: [], filters, sort: [], as }, { offset: 0 }, 1))
    },
  })

  return (
    <Dialog title={`${reference.table} · ${reference.column} ${value}`} open onClose={onClose} side>
      <Loaded query={relation.error === null ? query : { ...query, error: relation.error, isPending: false }}>
        {([row]) => row === undefined ? (
          <Empty title={texts.noRowHasThisKey}>{texts.itMayBeHiddenFrom}</Empty>
        ) : (
          <>
            <dl className={css.list}>
              {relation.data?.columns.map((c) => {
                const { text, look } = shown(row[c.name], c.kind)
                return (
                  <div key={c.name} className={css.item}>
                    <dt>{c.name}</dt>
                    <dd className={look === 'null' || look === 'empty' ? css.none : ''}>{text}</dd>
                  </div>
                )
              })}
            </dl>
            <p className={css.link}>
              <Link to={`/projects/${project}/tables/${encodeURIComponent(reference.table)}` as string} search={{ filter } as never}
                onClick={onClose}>
                {texts.openInTable(reference.table)}
              </Link>
            </p>
          </>
        )}
      </Loaded>
    </Dialog>
  )
}
