import { lazy, Suspense, useId, useMemo, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/functions'
import { api, inProject, read } from '../../api/client'
import { Button, IconButton } from '../../components/Button'
import { change } from '../../components/change'
import { Dialog, FormDialog } from '../../components/Dialog'
import { CheckField, inputClass, SelectField, TextField } from '../../components/Field'
import { Loaded, Skeleton } from '../../components/States'
import { queries } from '../../queries'
import { templates, type Draft, type FunctionInfo } from './call'
import css from './Functions.module.css'

const CodeEditor = lazy(() => import('../../components/CodeEditor').then((m) => ({ default: m.CodeEditor })))

/** Creates a function, from a template. */
export function NewFunction({ project, onClose }: { project: string; onClose: () => void }) {
  const [draft, setDraft] = useState<Draft | null>(null)
  if (draft !== null) return <Form project={project} initial={draft} onClose={onClose} />

  return (
    <Dialog title={texts.createAFunction} open side onClose={onClose}>
      <div className={css.templates}>
        {templates.map((t) => (
          <button key={t.title} type="button" className={css.template} onClick={() => setDraft(t.draft)}>
            <strong>{t.title}</strong>
            <span>{t.text}</span>
          </button>
        ))}
      </div>
    </Dialog>
  )
}

/** Changes a function's body. */
export function EditFunction({ project, of, onClose, onSQL }: {
  project: string
  of: FunctionInfo
  onClose: () => void
  onSQL: () => void
}) {
  const query = useQuery({
    queryKey: ['functions', project, 'one', of.schema, of.name, of.arguments],
    queryFn: () => read(api.GET('/functions/{schema}/{functionName}', {
      params: {
        header: inProject(project), path: { schema: of.schema, functionName: of.name },
        query: { arguments: of.arguments.replaceAll(', ', ',') },
      },
    })),
  })
  if (of.securityDefiner || of.volatility !== 'volatile') {
    return (
      <Dialog title={texts.editName(of.name)} open onClose={onClose}>
        <div className={css.stack}>
          <p>
            {texts.theFunctionIsTheForm(of.volatility, of.securityDefiner && texts.andRunsWithItsOwners)}
          </p>
          <div>
            <Button look="primary" onClick={onSQL}>{texts.editAsSQL}</Button>
          </div>
        </div>
      </Dialog>
    )
  }
  if (query.data !== undefined) {
    const { schema, name, parameters, returnType, language, definition, execute } = query.data.content
    const granted = execute.filter((role): role is 'anon' | 'authenticated' => role === 'anon' || role === 'authenticated')
    return (
      <Form project={project} replaces onClose={onClose}
        initial={{ schema, name, parameters, returnType, language, definition, execute: granted }} />
    )
  }

  return (
    <Dialog title={texts.editName(of.name)} open side wide onClose={onClose}>
      <Loaded query={query}>{() => null}</Loaded>
    </Dialog>
  )
}

function Form({ project, initial, replaces = false, onClose }: {
  project: string
  initial: Draft
  replaces?: boolean
  onClose: () => void
}) {
  const [draft, setDraft] = useState(initial)
  const key = useMemo(() => crypto.randomUUID(), [])
  const set = (part: Partial<Draft>) => setDraft({ ...draft, ...part })

  async function save() {
    await change(api.POST('/functions/{schema}', {
      params: { header: inProject(project), path: { schema: draft.schema } },
      ...(!replaces && { headers: { 'Idempotency-Key': key } }),
      body: {
        name: draft.name, parameters: draft.parameters, definition: draft.definition, language: draft.language,
        return_type: draft.returnType, replace: replaces, ...(!replaces && { execute: draft.execute }),
      },
    }))
    await queries.invalidateQueries({ queryKey: ['functions', project] })
  }

  return (
    <FormDialog title={replaces ? texts.editSchemaName(draft.schema, draft.name) : texts.createAFunction} open side wide
      onClose={onClose} action={replaces ? texts.saveFunction : texts.createFunction} onSubmit={save}
      disabled={draft.definition.trim() === ''}>
      {!replaces && <Signature project={project} draft={draft} set={set} />}
      <div className={css.stack}>
        <strong>{texts.body}</strong>
        <Suspense fallback={<Skeleton rows={4} />}>
          <CodeEditor label={texts.body} initial={draft.definition} onChange={(definition) => set({ definition })} />
        </Suspense>
        <p className={css.quiet}>
          {replaces
            ? texts.argumentsResultToChangeThem(draft.parameters.map((p) => `${p.name} ${p.type}`).join(', ') || texts.none, draft.returnType)
            : texts.theBodyIsCheckedWhen}
        </p>
      </div>
      {!replaces && <Execute draft={draft} set={set} />}
    </FormDialog>
  )
}

interface Part {
  draft: Draft
  set: (part: Partial<Draft>) => void
}

function Signature({ project, draft, set }: Part & { project: string }) {
  const { data } = useQuery({
    queryKey: ['languages', project],
    queryFn: () => read(api.GET('/languages', { params: { header: inProject(project) } })),
    staleTime: Infinity,
  })
  const languages = data?.content.map((l) => l.name) ?? ['sql', 'plpgsql']

  return (
    <>
      <div className={css.pair}>
        <TextField label={texts.name} required autoFocus autoComplete="off" value={draft.name}
          onChange={(e) => set({ name: e.target.value })} />
        <TextField label={texts.schema} required autoComplete="off" value={draft.schema}
          onChange={(e) => set({ schema: e.target.value })} />
        <TextField label={texts.resultType} required autoComplete="off" value={draft.returnType}
          hint={texts.aTypeVoidTriggerSetof}
          onChange={(e) => set({ returnType: e.target.value })} />
        <SelectField label={texts.language} value={draft.language} onChange={(e) => set({ language: e.target.value })}>
          {languages.map((l) => <option key={l}>{l}</option>)}
        </SelectField>
      </div>
      {draft.returnType !== 'trigger' && <ParameterList draft={draft} set={set} />}
    </>
  )
}

function ParameterList({ draft, set }: Part) {
  const list = useId()
  const change = (at: number, part: Partial<Draft['parameters'][number]>) =>
    set({ parameters: draft.parameters.map((p, i) => (i === at ? { ...p, ...part } : p)) })

  return (
    <fieldset className={css.group}>
      <legend>{texts.parameters}</legend>
      <datalist id={list}>
        {['text', 'integer', 'bigint', 'numeric', 'boolean', 'uuid', 'timestamptz', 'date', 'jsonb', 'text[]']
          .map((t) => <option key={t} value={t} />)}
      </datalist>
      {draft.parameters.map((p, i) => (
        <div key={i} className={css.parameter}>
          <input className={inputClass} aria-label={texts.nameOfParameterI(i + 1)} required value={p.name}
            onChange={(e) => change(i, { name: e.target.value })} />
          <input className={inputClass} aria-label={texts.typeOfParameterI(i + 1)} required list={list} value={p.type}
            onChange={(e) => change(i, { type: e.target.value })} />
          <IconButton label={texts.removeParameterI(i + 1)}
            onClick={() => set({ parameters: draft.parameters.filter((_, other) => other !== i) })}>
            ✕
          </IconButton>
        </div>
      ))}
      <div>
        <Button onClick={() => set({ parameters: [...draft.parameters, { name: '', type: 'text' }] })}>
          {texts.addParameter}
        </Button>
      </div>
    </fieldset>
  )
}

function Execute({ draft, set }: Part) {
  return (
    <fieldset className={css.group}>
      <legend>{texts.whoMayExecuteIt}</legend>
      {(['authenticated', 'anon'] as const).map((role) => (
        <CheckField key={role} label={role === 'anon' ? texts.callersWithoutAnAccountAnon : texts.signedInUsersAuthenticated}
          checked={draft.execute.includes(role)}
          onChange={(e) => set({
            execute: e.target.checked ? [...draft.execute, role] : draft.execute.filter((r) => r !== role),
          })} />
      ))}
      <p className={css.quiet}>{texts.theServiceRoleAlwaysMay}</p>
    </fieldset>
  )
}
