import { texts } from '#texts/components'
import { SelectField } from './Field'

/** Role ids of the API, the highest first. */
export const roles = { administrator: 1, owner: 2, admin: 3, developer: 4, viewer: 5 } as const

const meanings: Record<keyof typeof roles, string> = {
  administrator: texts.runsTheWholeInstance,
  owner: texts.everythingAlsoTransferAndDelete,
  admin: texts.membersKeysAndSettings,
  developer: texts.readsAndChangesData,
  viewer: texts.readsOnly,
}

/** Returns a role's name. */
export function roleName(id: number): string {
  return Object.entries(roles).find(([, role]) => role === id)?.[0] ?? texts.roleId(id)
}

/** A choice among the roles from highest to viewer. */
export function RoleField({ highest, value, onRole, hint }: {
  highest: number
  value: number
  onRole: (role: number) => void
  hint?: string
}) {
  return (
    <SelectField label={texts.role} hint={hint} value={value} onChange={(e) => onRole(Number(e.target.value))}>
      {Object.entries(roles).filter(([, id]) => id >= highest).map(([name, id]) => (
        <option key={id} value={id}>
          {name}: {meanings[name as keyof typeof roles]}
        </option>
      ))}
    </SelectField>
  )
}
