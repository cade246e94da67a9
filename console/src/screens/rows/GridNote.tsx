import type { ReactNode } from 'react'
import { ApiError } from '../../api/failure'
import { Button, ButtonLink } from '../../components/Button'
import { Empty, Failure } from '../../components/States'
import { tablePath } from '../../components/tableList'
import type { Pages } from './pages'
import type { Relation } from './relation'
import type { View } from './request'
import css from './GridNote.module.css'

/** What stands below the header while there are no rows, and why. */
export function GridNote({ pages, relation, view, onClear }: {
  pages: Pages
  relation: Relation
  view: View
  onClear: () => void
}) {
  const why = (
    <ButtonLink to={tablePath(view.project, relation.fullName, '/structure') as string} search={{ tab: 'access', as: view.as } as never}>
      See who may do what
    </ButtonLink>
  )
  if (pages.error !== null) {
    const notExposed = pages.error instanceof ApiError && pages.error.code === 'PGRST106'
    return (
      <Note>
        <Failure error={pages.error} retry={pages.retry} {...(view.as !== '' && { title: 'This caller is refused' })} />
        {view.as !== '' && <p className={css.next}>{why}</p>}
        {notExposed && (
          <p className={css.next}>
            Add <code>{relation.schema}</code> to the exposed schemas to see its rows here.{' '}
            <ButtonLink to={`/projects/${view.project}/settings` as string}>Open settings</ButtonLink>
          </p>
        )}
      </Note>
    )
  }
  if (pages.isPending || pages.count > 0) return null
  if (view.filters.length > 0) {
    return (
      <Note>
        <Empty title="No row meets the filters" action={<Button onClick={onClear}>Clear filters</Button>} />
      </Note>
    )
  }
  if (view.as !== '') {
    return (
      <Note>
        <Empty title="This caller sees no row" action={why}>
          {relation.rowLevelSecurity ? 'No policy lets this caller read a row.' : 'The table has no row for this caller.'}
        </Empty>
      </Note>
    )
  }

  return (
    <Note>
      <Empty title="No row yet">
        {relation.isView ? 'The query of this view returns no row.' : 'Insert a row, import a file, or write rows with a key of the project.'}
      </Empty>
    </Note>
  )
}

/** A grid may hold rows only, so the note is one. */
function Note({ children }: { children: ReactNode }) {
  return (
    <div role="row" className={css.note}>
      <div role="gridcell">{children}</div>
    </div>
  )
}
