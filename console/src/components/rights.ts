/** What the role of the signed-in user in a project's organization allows. The API decides; this only says so before. */

import { createContext, useContext } from 'react'
import { texts } from '#texts/components'
import { access } from '../api/access'
import { roleName, roles } from './Roles'

/** An operation of the platform API, or a change whose role the document does not state in its usual words. */
export type Operation = keyof typeof access | keyof typeof changes

const changes = { writeRows: 'developer', writeFiles: 'developer', createProject: 'admin' } as const
const needed: Record<Operation, keyof typeof roles> = { ...access, ...changes }

/** The id of the user's role; undefined while it is not known, and then nothing is refused. */
export const HeldRole = createContext<number | undefined>(undefined)

/** Returns why a role may not do an operation, or undefined. */
export function refusalOf(operation: Operation | undefined, held: number | undefined): string | undefined {
  if (operation === undefined || held === undefined || held <= roles[needed[operation]]) return undefined

  return texts.needsTheRoleYouAre(needed[operation], roleName(held))
}

/** Returns why the signed-in user may not do an operation, or undefined. */
export function useRefusal(operation: Operation | undefined): string | undefined {
  return refusalOf(operation, useContext(HeldRole))
}

/** Reports whether a screen should ask for what an operation lists: not before the role is known. */
export function useMayRead(operation: Operation): boolean {
  const held = useContext(HeldRole)
  return held !== undefined && refusalOf(operation, held) === undefined
}
