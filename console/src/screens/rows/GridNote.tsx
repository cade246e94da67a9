import type { ReactNode } from 'react'
import { texts } from '#texts/rows'
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
      {texts.seeWhoMayDoWhat}
    </ButtonLink>
  )
  if (pages.error !== null) {
    const notExposed = pages.error instanceof ApiError && pages.error.code === 'PGRST106'
    return (
      <Note>
        <Failure error={pages.error} retry={pages.retry} {...(view.as !== '' && { title: texts.thisCallerIsRefused })} />
        {view.as !== '' && <p className={css.next}>{why}</p>}
        {notExposed && (
          <p className={css.next}>
            {texts.addToTheExposedSchemas(<code>{relation.schema}</code>, <ButtonLink to={`/projects/${view.project}/settings` as string}>{texts.openSettings}</ButtonLink>)}
          </p>
        )}
      </Note>
    )
  }
  if (pages.isPending || pages.count > 0) return null
  if (view.filters.length > 0) {
    return (
      <Note>
        <Empty title={texts.noRowMeetsTheFilters} action={<Button onClick={onClear}>{texts.clearFilters}</Button>} />
      </Note>
    )
  }
  if (view.as !== '') {
    return (
      <Note>
        <Empty title={texts.thisCallerSeesNoRow} action={why}>
          {relation.rowLevelSecurity ? texts.noPolicyLetsThisCaller : texts.theTableHasNoRow}
        </Empty>
      </Note>
    )
  }

  return (
    <Note>
      <Empty title={texts.noRowYet}>
        {relation.isView ? texts.theQueryOfThisView : texts.insertARowImportA}
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
