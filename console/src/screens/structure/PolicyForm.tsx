import { useId, useMemo, useState } from 'react'
import { texts } from '#texts/structure'
import { api, type Schemas } from '../../api/client'
import { Button } from '../../components/Button'
import { change } from '../../components/change'
import { Dialog, FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextArea, TextField } from '../../components/Field'
import { createPolicy, writes, type PolicyDraft } from './ddl'
import { SQLPreview } from './SQLPreview'
import { onTable, reload, useColumns, useTableNames, type TableRef } from './table'
import { opensWrites, templates, type Choice, type Template } from './templates'
import css from './Structure.module.css'
import look from './Policies.module.css'

const commands = { select: 'select: read', insert: 'insert', update: 'update', delete: 'delete', all: texts.allCommands }
const allRoles = ['anon', 'authenticated', 'service_role', 'public'] as const
type Role = (typeof allRoles)[number]

interface Props {
  table: TableRef
  policy?: Schemas['Policy']
  onClose: () => void
}

/** Creates a policy from a template, or changes one. */
export function PolicyForm({ table, policy, onClose }: Props) {
  const [template, setTemplate] = useState<Template | null>(null)
  if (policy !== undefined) {
    const draft = { ...policy, using: policy.using ?? '', withCheck: policy.withCheck ?? '' }
    return <Editor table={table} initial={draft} former={policy.name} onClose={onClose} />
  }
  if (template !== null) return <Filled table={table} template={template} onClose={onClose} />

  return (
    <Dialog title={texts.createAPolicy} open onClose={onClose} side>
      <div className={look.templates}>
        {templates.map((t) => (
          <button key={t.title} type="button" className={look.template} onClick={() => setTemplate(t)}>
            <strong>{t.title}</strong>
            <span>{t.text}</span>
          </button>
        ))}
      </div>
    </Dialog>
  )
}

/** Asks for the columns that a template compares, then opens the editor. */
function Filled({ table, template, onClose }: { table: TableRef; template: Template; onClose: () => void }) {
  const columns = useColumns(table).data?.content ?? []
  const [choice, setChoice] = useState<Choice>({ owner: '', group: '', members: '', memberGroup: '', memberUser: '' })
  const [filled, setFilled] = useState(template.needs === 'nothing')
  const owner = choice.owner || columns.find((c) => c.type === 'uuid' && /user|owner|author|created_by/.test(c.name))?.name || ''
  const set = (part: Partial<Choice>) => setChoice({ ...choice, ...part })
  if (filled) return <Editor table={table} initial={template.make({ ...choice, owner })} onClose={onClose} />

  return (
    <Dialog title={template.title} open onClose={onClose} side>
      <form className={css.group} onSubmit={(e) => {
        e.preventDefault()
        setFilled(true)
      }}>
        <p>{template.text}</p>
        {template.needs === 'owner' && (
          <ColumnSelect label={texts.columnWithTheUsersID} value={owner} columns={columns.filter((c) => c.type === 'uuid')}
            hint={texts.aColumnOfTheType} onChange={(name) => set({ owner: name })} />
        )}
        {template.needs === 'members' && <Members table={table} columns={columns} choice={choice} set={set} />}
        <div>
          <Button type="submit" look="primary">{texts.fillInPolicy}</Button>
        </div>
      </form>
    </Dialog>
  )
}

function Members({ table, columns, choice, set }: {
  table: TableRef
  columns: Schemas['Column'][]
  choice: Choice
  set: (part: Partial<Choice>) => void
}) {
  const list = useId()
  const tables = useTableNames(table.project)
  const known = tables.includes(choice.members) ? choice.members : ''
  const theirs = useColumns({ project: table.project, uuid: known }).data?.content ?? []

  return (
    <>
      <ColumnSelect label={texts.columnThatNamesTheGroup} value={choice.group} columns={columns}
        onChange={(name) => set({ group: name })} />
      <TextField label={texts.tableOfMemberships} required list={list} value={choice.members}
        onChange={(e) => set({ members: e.target.value })} />
      <datalist id={list}>{tables.map((t) => <option key={t} value={t} />)}</datalist>
      <ColumnSelect label={texts.itsColumnThatNamesThe} value={choice.memberGroup} columns={theirs}
        onChange={(name) => set({ memberGroup: name })} />
      <ColumnSelect label={texts.itsColumnWithTheUsers} value={choice.memberUser} columns={theirs}
        onChange={(name) => set({ memberUser: name })} />
    </>
  )
}

function ColumnSelect({ label, hint, value, columns, onChange }: {
  label: string
  hint?: string
  value: string
  columns: Schemas['Column'][]
  onChange: (name: string) => void
}) {
  return (
    <SelectField label={label} hint={hint} required value={value} onChange={(e) => onChange(e.target.value)}>
      <option value="">{texts.choose}</option>
      {columns.map((c) => <option key={c.name} value={c.name}>{c.name} ({c.type})</option>)}
    </SelectField>
  )
}

function Editor({ table, initial, former, onClose }: {
  table: TableRef
  initial: PolicyDraft
  former?: string // the name of the policy that changes
  onClose: () => void
}) {
  const [draft, setDraft] = useState(initial)
  const [confirmed, setConfirmed] = useState(false)
  const key = useMemo(() => crypto.randomUUID(), [])
  const set = (part: Partial<PolicyDraft>) => setDraft({ ...draft, ...part })
  const isNew = former === undefined
  const isOpen = opensWrites(draft)

  async function save() {
    const confirm = isOpen && confirmed
    if (isNew) await create(table, draft, confirm, key)
    else await update(table, former, draft, confirm)
    await reload(table.project)
  }

  return (
    <FormDialog title={isNew ? texts.createAPolicy : texts.editFormer(former)} open onClose={onClose} side
      action={isNew ? texts.createPolicy : texts.savePolicy} onSubmit={save}
      disabled={draft.roles.length === 0 || (isOpen && !confirmed)}>
      <TextField label={texts.name} required value={draft.name} hint={texts.lettersDigitsAnd}
        onChange={(e) => set({ name: e.target.value })} />
      <SelectField label={texts.command} value={draft.command} disabled={!isNew}
        {...(!isNew && { hint: texts.theCommandCannotChangeDelete })}
        onChange={(e) => set({ command: e.target.value as PolicyDraft['command'] })}>
        {Object.entries(commands).map(([command, text]) => <option key={command} value={command}>{text}</option>)}
      </SelectField>
      <fieldset className={css.group}>
        <legend>{texts.roles}</legend>
        <div className={css.checks}>
          {allRoles.map((role) => (
            <CheckField key={role} label={role} checked={draft.roles.includes(role)}
              onChange={(e) => set({ roles: allRoles.filter((r) => (r === role ? e.target.checked : draft.roles.includes(r))) })} />
          ))}
        </div>
      </fieldset>
      <Conditions draft={draft} set={set} />
      {isNew && (
        <CheckField label={texts.restrictive} checked={!draft.permissive}
          hint={texts.aRowMustSatisfyEvery}
          onChange={(e) => set({ permissive: !e.target.checked })} />
      )}
      {isOpen && (
        <CheckField label={texts.callersWithoutAnAccountMayWrite} checked={confirmed}
          hint={texts.thePolicyLetsAnonOr}
          onChange={(e) => setConfirmed(e.target.checked)} />
      )}
      <SQLPreview change={createPolicy(table.name, draft)} />
    </FormDialog>
  )
}

function Conditions({ draft, set }: { draft: PolicyDraft; set: (part: Partial<PolicyDraft>) => void }) {
  return (
    <>
      {draft.command !== 'insert' && (
        <TextArea label={texts.existingRowsUsing} spellCheck={false} value={draft.using}
          required hint={texts.aConditionOnRowsThat}
          onChange={(e) => set({ using: e.target.value })} />
      )}
      {writes(draft.command) && (
        <TextArea label={texts.writtenRowsWithCheck} spellCheck={false} value={draft.withCheck}
          required={draft.command === 'insert'}
          hint={draft.command === 'insert' ? texts.aConditionOnNewRows : texts.aConditionOnRowsAs}
          onChange={(e) => set({ withCheck: e.target.value })} />
      )}
    </>
  )
}

async function create(table: TableRef, p: PolicyDraft, confirm: boolean, key: string): Promise<void> {
  await change(api.POST('/tables/{tableUUID}/policies', {
    params: onTable(table),
    headers: { 'Idempotency-Key': key },
    body: {
      name: p.name, command: p.command, roles: p.roles as Role[], permissive: p.permissive,
      ...(p.command !== 'insert' && { using: p.using }),
      ...(writes(p.command) && p.withCheck !== '' && { with_check: p.withCheck }),
      ...(confirm && { confirm }),
    },
  }))
}

async function update(table: TableRef, former: string, p: PolicyDraft, confirm: boolean): Promise<void> {
  await change(api.PUT('/tables/{tableUUID}/policies/{policyName}', {
    params: { header: onTable(table).header, path: { tableUUID: table.uuid, policyName: former } },
    body: {
      ...(p.name !== former && { name: p.name }),
      roles: p.roles as Role[],
      ...(p.command !== 'insert' && { using: p.using }),
      ...(writes(p.command) && p.withCheck !== '' && { with_check: p.withCheck }),
      ...(confirm && { confirm }),
    },
  }))
}
