import { useState } from 'react'
import { texts } from '#texts/structure'
import { api } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { change } from '../../components/change'
import { Confirm, FormDialog } from '../../components/Dialog'
import { onTable, reload, type TableRef } from './table'
import css from './Structure.module.css'

/** Whether row level security is on, what follows from it, and its switch. */
export function RowSecurity({ table, on, policies }: { table: TableRef; on: boolean; policies: number | undefined }) {
  const [asks, setAsks] = useState(false)
  const close = () => setAsks(false)

  async function turn() {
    await change(api.PUT('/tables/{tableUUID}', {
      params: onTable(table), body: { row_level_security: !on, ...(on && { confirm: true }) },
    }))
    await reload(table.project)
  }

  return (
    <section className={css.state} aria-label={texts.rowLevelSecurity}>
      <div>
        <h2>
          {texts.rowLevelSecurity}{' '}<Badge tone={on ? 'success' : 'danger'}>{on ? texts.on : texts.off}</Badge>
        </h2>
        <p>{meaning(on, policies)}</p>
      </div>
      <Button needs="updateTable" look={on ? 'danger' : 'primary'} onClick={() => setAsks(true)}>
        {on ? texts.turnOff : texts.turnOn}
      </Button>
      {asks && on && (
        <Confirm title={texts.turnOffRowLevelSecurity} open onClose={close} action={texts.turnOff} name={table.name}
          onSubmit={turn}>
          <p>
            {texts.allRowsOfBecomeAccessible(table.name)}
          </p>
        </Confirm>
      )}
      {asks && !on && (
        <FormDialog title={texts.turnOnRowLevelSecurity} open onClose={close} action={texts.turnOn} onSubmit={turn}>
          <p>
            {texts.rolesOtherThanTheOwner}
            {policies === 0 ? texts.noneYetSinceThereIs : ''}.
          </p>
        </FormDialog>
      )}
    </section>
  )
}

function meaning(on: boolean, policies: number | undefined): string {
  if (!on) return texts.everyRoleWithAPrivilege
  if (policies === 0) return texts.thereIsNoPolicySo

  return texts.aRoleReachesTheRows
}
