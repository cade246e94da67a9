import { useState } from 'react'
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
    <section className={css.state} aria-label="Row level security">
      <div>
        <h2>
          Row level security <Badge tone={on ? 'success' : 'danger'}>{on ? 'on' : 'off'}</Badge>
        </h2>
        <p>{meaning(on, policies)}</p>
      </div>
      <Button needs="updateTable" look={on ? 'danger' : 'primary'} onClick={() => setAsks(true)}>
        {on ? 'Turn off' : 'Turn on'}
      </Button>
      {asks && on && (
        <Confirm title="Turn off row level security" open onClose={close} action="Turn off" name={table.name}
          onSubmit={turn}>
          <p>
            All rows of {table.name} become accessible to every role with a privilege on the table. Its policies stay,
            without effect.
          </p>
        </Confirm>
      )}
      {asks && !on && (
        <FormDialog title="Turn on row level security" open onClose={close} action="Turn on" onSubmit={turn}>
          <p>
            Roles other than the owner and the service role see only rows that a policy allows
            {policies === 0 ? ': none yet, since there is no policy' : ''}.
          </p>
        </FormDialog>
      )}
    </section>
  )
}

function meaning(on: boolean, policies: number | undefined): string {
  if (!on) return 'Every role with a privilege on the table reaches all of its rows. Policies have no effect.'
  if (policies === 0) return 'There is no policy, so only the owner and the service role reach rows.'

  return 'A role reaches the rows that a policy allows, if it also has the privilege (see Grants).'
}
