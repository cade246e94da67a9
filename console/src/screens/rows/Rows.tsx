import { useMemo } from 'react'
import { texts } from '#texts/rows'
import { useParams } from '../../url'
import { ButtonLink } from '../../components/Button'
import { Page } from '../../components/Page'
import { useRefusal } from '../../components/rights'
import { Failure, Skeleton } from '../../components/States'
import { ApiError } from '../../api/failure'
import { useRelation } from './relation'
import { RowsView } from './RowsView'
import { splitName } from './types'

/** The rows of a table or view. */
export function Rows() {
  const { project = '', table = '' } = useParams({ strict: false }) as { project?: string; table?: string }
  const fullName = table.includes('.') ? table : `public.${table}`
  const relation = useRelation(project, fullName)
  const [, name] = splitName(fullName)
  const refusal = useRefusal('writeRows')
  const shown = useMemo(() => (relation.data === undefined || refusal === undefined
    ? relation.data
    : { ...relation.data, canUpdate: false, canInsert: false, refusal }), [relation.data, refusal])

  if (shown !== undefined) {
    return <RowsView key={fullName} project={project} relation={shown} />
  }

  return (
    <Page title={name}>
      {relation.isPending ? <Skeleton rows={12} /> : (
        <>
          <Failure error={relation.error} retry={() => void relation.refetch()} />
          {relation.error instanceof ApiError && relation.error.status === 404 && (
            <ButtonLink to={`/projects/${project}/tables` as string}>{texts.showAllTables}</ButtonLink>
          )}
        </>
      )}
    </Page>
  )
}
