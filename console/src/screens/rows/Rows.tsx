import { useParams } from '../../url'
import { ButtonLink } from '../../components/Button'
import { Page } from '../../components/Page'
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

  if (relation.data !== undefined) {
    return <RowsView key={fullName} project={project} relation={relation.data} />
  }

  return (
    <Page title={name}>
      {relation.isPending ? <Skeleton rows={12} /> : (
        <>
          <Failure error={relation.error} retry={() => void relation.refetch()} />
          {relation.error instanceof ApiError && relation.error.status === 404 && (
            <ButtonLink to={`/projects/${project}/tables` as string}>Show all tables</ButtonLink>
          )}
        </>
      )}
    </Page>
  )
}
