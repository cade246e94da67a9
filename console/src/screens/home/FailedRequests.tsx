import { Link } from '@tanstack/react-router'
import { texts } from '#texts/home'
import { Badge, Time } from '../../components/Bits'
import { Card } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import css from './Home.module.css'
import { useFailedRequests } from './queries'

/** The latest requests that failed, with their reason. */
export function FailedRequests({ project }: { project: string }) {
  const query = useFailedRequests(project)
  const all = `/projects/${project}/requests`

  return (
    <Card title={texts.latestFailedRequests}
      actions={['4xx', '5xx'].map((status) => (
        <Link key={status} to={all as string} search={{ status } as never}>{texts.allStatus(status)}</Link>
      ))}>
      <div className={css.panel}>
        <Loaded query={query} rows={5}>
          {({ content }) => content.length === 0 ? (
            <Empty title={texts.noRequestFailed}>{texts.failuresOfTheLastDays}</Empty>
          ) : (
            <ul className={css.requests}>
              {content.map((r) => (
                <li key={r.uuid}>
                  <Badge tone={r.status >= 500 ? 'danger' : 'warning'}>{r.status}</Badge>
                  <Link className={css.route} to={all as string} search={{ request: r.uuid } as never}>
                    {r.method} {r.route}
                  </Link>
                  <span className={css.quiet}><Time at={r.at} /></span>
                  <p className={css.reason}>{r.errorMessage ?? r.errorCode}</p>
                </li>
              ))}
            </ul>
          )}
        </Loaded>
      </div>
    </Card>
  )
}
