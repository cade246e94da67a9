import type { ReactNode } from 'react'
import { texts } from '#texts/components'
import { ApiError } from '../api/failure'
import { Button } from './Button'
import css from './States.module.css'

/** Shows a failure inside a form or dialog. */
export function FailureNote({ error }: { error: unknown }) {
  const failure = error instanceof ApiError ? error : null

  return (
    <div className={css.note} role="alert">
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {failure?.fields.map((f) => (
        <p key={f.field + f.code}>
          <code>{f.field}</code> {f.message}
        </p>
      ))}
      {failure !== null && failure.hint !== '' && <p>{failure.hint}</p>}
      {failure !== null && failure.requestId !== '' && <p className={css.request}>{texts.requestRequestId(failure.requestId)}</p>}
    </div>
  )
}

/** Replaces a screen's content that could not be loaded. */
export function Failure({ error, retry, title }: { error: unknown; retry?: () => void; title?: string }) {
  const forbidden = error instanceof ApiError && error.status === 403
  return (
    <div className={css.state}>
      <h2>{title ?? (forbidden ? texts.yourRoleDoesNotAllow : texts.thisCouldNotBeLoaded)}</h2>
      <FailureNote error={error} />
      {retry && !forbidden && <Button onClick={retry}>{texts.tryAgain}</Button>}
    </div>
  )
}

/** Stands for content that does not exist yet; children are the next step. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={css.state}>
      <h2>{title}</h2>
      {children !== undefined && <div className={css.text}>{children}</div>}
      {action}
    </div>
  )
}

/** Holds the place of rows that are loading. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div className={css.skeleton} role="status" aria-label={texts.loading}>
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} />
      ))}
    </div>
  )
}

interface Loading {
  isPending: boolean
  error: unknown
  refetch: () => unknown
}

/** Shows a query's content, or its loading or failed state. */
export function Loaded<T>({ query, children, rows }: {
  query: Loading & { data: T | undefined }
  children: (data: T) => ReactNode
  rows?: number
}) {
  if (query.data !== undefined) return children(query.data)
  if (query.isPending) return <Skeleton {...(rows !== undefined && { rows })} />

  return <Failure error={query.error} retry={() => void query.refetch()} />
}
