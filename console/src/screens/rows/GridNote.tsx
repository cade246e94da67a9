import { ApiError } from '../../api/failure'
import { Button, ButtonLink } from '../../components/Button'
import { Empty, Failure } from '../../components/States'
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
  if (pages.error !== null) {
    const notExposed = pages.error instanceof ApiError && pages.error.code === 'PGRST106'
    return (
      <div className={css.note}>
        <Failure error={pages.error} retry={pages.retry} />
        {notExposed && (
          <p className={css.next}>
            Add <code>{relation.schema}</code> to the exposed schemas to see its rows here.{' '}
            <ButtonLink to={`/projects/${view.project}/settings` as string}>Open settings</ButtonLink>
          </p>
        )}
      </div>
    )
  }
  if (pages.isPending || pages.count > 0) return null
  if (view.filters.length > 0) {
    return (
      <div className={css.note}>
        <Empty title="No row meets the filters" action={<Button onClick={onClear}>Clear filters</Button>} />
      </div>
    )
  }
  if (view.as !== '') {
    return (
      <div className={css.note}>
        <Empty title="This caller sees no row">
          {relation.rowLevelSecurity ? 'No policy lets this caller read a row.' : 'The table has no row for this caller.'}
        </Empty>
      </div>
    )
  }

  return (
    <div className={css.note}>
      <Empty title="No row yet">
        {relation.isView ? 'The query of this view returns no row.' : 'Insert a row, import a file, or write rows with a key of the project.'}
      </Empty>
    </div>
  )
}
