import { useState } from 'react'
import { useMutation, useQuery } from '@tanstack/react-query'
import { texts } from '#texts/forms'
import { api, read, type Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button, IconButton } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { Menu } from '../../components/Menu'
import { Row } from '../../components/Page'
import { Empty, FailureNote, Loaded } from '../../components/States'
import { queries } from '../../queries'
import { FieldForm } from './FieldForm'
import { fieldTypes, moved, rulesText, type FieldType, type FormField } from './rules'
import css from './Form.module.css'

/** The fields of a form, in their order. */
export function Fields({ project, form }: { project: string; form: Schemas['FullForm'] }) {
  const [edited, setEdited] = useState<FormField | 'new' | null>(null)
  const [deleted, setDeleted] = useState<FormField | null>(null)
  const path = { formUUID: form.uuid }
  const refresh = () => queries.invalidateQueries({ queryKey: ['forms', project] })
  const query = useQuery({
    queryKey: ['forms', project, 'fields', form.uuid],
    queryFn: () => read(api.GET('/forms/{formUUID}/fields', { params: { path } })),
  })
  const order = useMutation({
    mutationFn: (fields: string[]) => read(api.PUT('/forms/{formUUID}/fields/order', { params: { path }, body: { fields } })),
    onSuccess: refresh,
  })
  const add = <Button needs="createField" look="primary" onClick={() => setEdited('new')}>{texts.addField}</Button>

  return (
    <>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noFieldYet} action={add}>{texts.aFieldAsksOneQuestion}</Empty>
        ) : (
          <>
            <Row>{add}</Row>
            {order.error !== null && <FailureNote error={order.error} />}
            <ol className={css.fields}>
              {content.map((f, i) => (
                <FieldRow key={f.uuid} field={f} name={metadata.names[f.uuid]} first={i === 0} last={i === content.length - 1}
                  busy={order.isPending} onEdit={() => setEdited(f)} onDelete={() => setDeleted(f)}
                  onMove={(by) => order.mutate(moved(content.map((other) => other.uuid), f.uuid, by))} />
              ))}
            </ol>
            {edited !== null && edited !== 'new' && (
              <FieldForm project={project} form={form.uuid} field={edited} name={metadata.names[edited.uuid] ?? null}
                onClose={() => setEdited(null)} />
            )}
          </>
        )}
      </Loaded>
      {edited === 'new' && <FieldForm project={project} form={form.uuid} onClose={() => setEdited(null)} />}
      {deleted && (
        <Confirm title={texts.deleteThisField} open onClose={() => setDeleted(null)} action={texts.deleteField} onSubmit={async () => {
          await read(api.DELETE('/forms/{formUUID}/fields/{fieldUUID}', { params: { path: { ...path, fieldUUID: deleted.uuid } } }))
          await refresh()
        }}>
          <p>{texts.theFormNoLongerAsks(deleted.label)}</p>
        </Confirm>
      )}
    </>
  )
}

function FieldRow({ field: f, name, first, last, busy, onEdit, onDelete, onMove }: {
  field: FormField
  name: string | undefined
  first: boolean
  last: boolean
  busy: boolean
  onEdit: () => void
  onDelete: () => void
  onMove: (by: number) => void
}) {
  return (
    <li className={css.field}>
      <span className={css.order}>
        <IconButton needs="orderFields" label={texts.moveLabelUp(f.label)} disabled={first || busy}
          onClick={() => onMove(-1)}>↑</IconButton>
        <IconButton needs="orderFields" label={texts.moveLabelDown(f.label)} disabled={last || busy}
          onClick={() => onMove(1)}>↓</IconButton>
      </span>
      <div className={css.question}>
        <b>{f.label}</b> {f.isRequired && <Badge>{texts.required}</Badge>}
        <p className={css.note}>
          {fieldTypes[f.type as FieldType] ?? f.type}
          {rulesText(f) !== '' && ` · ${rulesText(f)}`}
          {name !== undefined && <> · <code>{name}</code></>}
        </p>
        {f.description !== null && <p className={css.note}>{f.description}</p>}
      </div>
      <Row>
        <Button needs="updateField" onClick={onEdit}>{texts.editField}</Button>
        <Menu label={texts.actionsForLabel(f.label)} items={[{ text: texts.deleteField, danger: true, needs: 'deleteField',
          onSelect: onDelete }]} />
      </Row>
    </li>
  )
}
