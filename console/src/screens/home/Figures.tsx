import type { ReactNode } from 'react'
import { Link } from '@tanstack/react-router'
import { texts } from '#texts/home'
import { Badge, formatBytes, Time } from '../../components/Bits'
import css from './Home.module.css'
import { useFindings, useQuota, useStatistics } from './queries'

/** What the project holds and how safe it is, in four figures. */
export function Figures({ project, enabled }: { project: string; enabled: boolean }) {
  const statistics = useStatistics(project, enabled)
  const quota = useQuota(project, enabled)
  const findings = useFindings(project, enabled)
  const q = quota.data?.content
  const backups = statistics.data?.content.backups
  const open = findings.data?.content
  const errors = open?.filter((f) => f.severity === 'error').length ?? 0
  const to = (path: string) => `/projects/${project}/${path}`

  return (
    <section className={css.figures} aria-label={texts.figures}>
      <Figure title={texts.database} to={to('tables')} failure={quota.error}
        value={q && formatBytes(q.databaseBytes)}
        note={q && <Share label={texts.databaseQuota} used={q.databaseBytes} limit={q.maxDatabaseBytes} />} />
      <Figure title={texts.files} to={to('files')} failure={quota.error}
        value={q && formatBytes(q.bytes)}
        note={q && <Share label={texts.fileQuota} used={q.bytes} limit={q.maxBytes}
          more={q.files === 1 ? texts.oneFile : texts.files2(q.files.toLocaleString())} />} />
      <Figure title={texts.lastBackup} to={to('backups')} failure={statistics.error}
        value={backups && (backups.lastAt === null ? texts.noneYet : <Time at={backups.lastAt} />)}
        note={backups && (backups.lastProvenAt === null
          ? <Badge tone="warning">{backups.lastAt === null ? texts.createABackup : texts.neverProven}</Badge>
          : <Badge tone="success">{texts.provenTime(<Time at={backups.lastProvenAt} />)}</Badge>)} />
      <Figure title={texts.advice} to={to('advice')} failure={findings.error}
        value={open && (open.length === 1 ? '1 finding' : texts.countFindings(open.length.toLocaleString()))}
        note={open && (
          errors > 0 ? <Badge tone="danger">{texts.errorsData(errors, errors === 1 ? texts.exposes : texts.expose)}</Badge>
          : open.length > 0 ? <Badge>{texts.noDataExposed}</Badge>
          : <Badge tone="success">{texts.nothingToDo}</Badge>
        )} />
    </section>
  )
}

function Figure({ title, to, value, note, failure }: {
  title: string
  to: string
  value: ReactNode
  note: ReactNode
  failure: unknown
}) {
  const failed = value === undefined && failure !== null

  return (
    <Link to={to} className={css.figure} aria-busy={value === undefined && !failed}>
      <h2>{title}</h2>
      <div className={css.value}>{failed ? '—' : value ?? <span className={css.wait} />}</div>
      <div className={css.note}>
        {failed ? <span>{failure instanceof Error ? failure.message : String(failure)}</span> : note ?? '\u00a0'}
      </div>
    </Link>
  )
}

function Share({ label, used, limit, more }: { label: string; used: number; limit: number; more?: string }) {
  const percent = limit === 0 ? 100 : Math.min(100, (used / limit) * 100)

  return (
    <>
      <meter className={css.meter} aria-label={label} min={0} max={100} high={90} value={percent} />
      <span>{texts.morePercentOfLimit(more !== undefined && `${more}, `, percent > 0 && percent < 1 ? texts.underOne : Math.round(percent), formatBytes(limit))}</span>
    </>
  )
}
