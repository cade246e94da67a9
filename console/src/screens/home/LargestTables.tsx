import { Link } from '@tanstack/react-router'
import { texts } from '#texts/home'
import { formatBytes } from '../../components/Bits'
import { Card } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import css from './Home.module.css'
import { useStatistics } from './queries'

const shown = 6

/** Where the database's bytes are. */
export function LargestTables({ project, enabled }: { project: string; enabled: boolean }) {
  const query = useStatistics(project, enabled)

  return (
    <Card title={texts.largestTables}>
      <div className={css.panel}>
        <Loaded query={query} rows={shown}>
          {({ content: { tables, cacheHitRatio } }) => tables.length === 0 ? (
            <Empty title={texts.noTableYet}>{texts.createOneOrImportA}</Empty>
          ) : (
            <>
              <ul className={css.bars}>
                {tables.slice(0, shown).map((t) => (
                  <li key={`${t.schema}.${t.name}`}>
                    <Link className={css.barName}
                      to={`/projects/${project}/tables/${encodeURIComponent(`${t.schema}.${t.name}`)}` as string}>
                      {t.schema === 'public' ? t.name : `${t.schema}.${t.name}`}
                    </Link>
                    <span className={css.barSize}>{formatBytes(t.size)}</span>
                    <span className={css.bar} aria-hidden="true">
                      <span style={{ width: `${(t.size / Math.max(tables[0]?.size ?? 0, 1)) * 100}%` }} />
                    </span>
                  </li>
                ))}
              </ul>
              {cacheHitRatio !== null && (
                <p className={css.quiet}>{texts.ofBlockReadsCameFrom((cacheHitRatio * 100).toFixed(1))}</p>
              )}
            </>
          )}
        </Loaded>
      </div>
    </Card>
  )
}
