import { useContext, type ReactNode } from 'react'
import { texts } from '#texts/components'
import { HeldRole, refusalOf, type Operation } from './rights'
import { Empty, Skeleton } from './States'

/** Content that begins with an operation. Without the role for it, it says so and asks nothing. */
export function Guarded({ needs, children }: { needs: Operation; children: ReactNode }) {
  const held = useContext(HeldRole)
  const refusal = refusalOf(needs, held)
  if (refusal !== undefined) {
    return <Empty title={texts.yourRoleDoesNotAllow}>{texts.adminsOfTheOrganizationCan(refusal)}</Empty>
  }

  return held === undefined ? <Skeleton /> : children
}
