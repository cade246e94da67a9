import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/functions'
import { api, inProject, read } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { change, mentionsOf } from '../../components/change'
import { useFunctions } from '../../components/choices'
import { Confirm } from '../../components/Dialog'
import { jsonOf, textOf } from '../../components/exact'
import { SelectField } from '../../components/Field'
import { Menu } from '../../components/Menu'
import { Page } from '../../components/Page'
import { runSQL } from '../../components/runSQL'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { useURLState } from '../../url'
import { definitionQuery, signatureOf, type FunctionInfo } from './call'
import { EditFunction, NewFunction } from './FunctionForm'
import { TestCall } from './TestCall'
import css from './Functions.module.css'

type Opened = { act: 'create' } | { act: 'edit' | 'test' | 'delete'; of: FunctionInfo } | null

/** The project's functions and procedures. */
export function Functions() {
  const { project } = useParams({ strict: false }) as { project: string }
  const [page, setPage] = useURLState('page', '1')
  const [schema, setSchema] = useURLState('schema', '')
  const [opened, setOpened] = useState<Opened>(null)
  const close = () => setOpened(null)
  const openAsSQL = useOpenAsSQL(project)
  const schemas = useSchemas(project)
  const query = useQuery({
    queryKey: ['functions', project, schema, page],
    queryFn: () => read(api.GET('/functions', {
      params: { header: inProject(project), query: { page: Number(page), sort: 'name', ...(schema !== '' && { schema }) } },
    })),
  })
  const create = (
    <Button needs="createFunction" look="primary" onClick={() => setOpened({ act: 'create' })}>
      {texts.createFunction}
    </Button>
  )

  return (
    <Page title={texts.sqlFunctions} lead={texts.functionsInTheDatabaseCalled} actions={create}>
      {(schemas.length > 1 || schema !== '') && (
        <SelectField label={texts.schema} value={schema} onChange={(e) => setSchema(e.target.value)}>
          <option value="">{texts.allSchemas}</option>
          {[...new Set([...schemas, ...(schema === '' ? [] : [schema])])].map((s) => <option key={s}>{s}</option>)}
        </SelectField>
      )}
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noFunctionYet} action={create}>
            {texts.aFunctionKeepsLogicNext}
          </Empty>
        ) : (
          <>
            <FunctionTable functions={content} onOpen={setOpened} onSQL={openAsSQL} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {opened?.act === 'create' && <NewFunction project={project} onClose={close} />}
      {opened?.act === 'edit' && (
        <EditFunction project={project} of={opened.of} onClose={close} onSQL={() => openAsSQL(opened.of)} />
      )}
      {opened?.act === 'test' && <TestCall project={project} of={opened.of} onClose={close} />}
      {opened?.act === 'delete' && <DeleteFunction project={project} of={opened.of} onClose={close} />}
    </Page>
  )
}

function FunctionTable({ functions, onOpen, onSQL }: {
  functions: FunctionInfo[]
  onOpen: (opened: Opened) => void
  onSQL: (of: FunctionInfo) => void
}) {
  return (
    <Table label={texts.functions} rows={functions} keyOf={signatureOf} columns={[
      { title: texts.name, cell: (f) => <code className={css.wrap}>{f.schema}.{f.name}</code> },
      { title: texts.arguments, cell: (f) => <code className={css.wrap}>{argumentsOf(f)}</code> },
      { title: texts.result, narrow: true, cell: (f) => f.kind === 'procedure'
        ? <Badge>{texts.procedure}</Badge> : <code className={css.wrap}>{f.returnType}</code> },
      { title: texts.kind, narrow: true, cell: (f) => (
        <span className={css.badges}>
          <Badge>{f.language}</Badge>
          <Badge>{f.volatility}</Badge>
          {f.securityDefiner && <Badge tone="warning">{texts.securityDefiner}</Badge>}
          {f.kind === 'window' && <Badge>{texts.window}</Badge>}
        </span>
      ) },
      { title: texts.mayExecute, narrow: true, cell: (f) => f.execute.length === 0
        ? <span className={css.quiet}>{texts.serviceRole}</span>
        : <span className={css.badges}>{f.execute.map((role) => <Badge key={role}>{role}</Badge>)}</span> },
      { title: texts.actions, align: 'right', cell: (f) => (
        <Menu label={texts.actionsOfName(f.name)} items={[
          { text: texts.testCall, disabled: f.returnType === 'trigger' || f.kind !== 'function',
            onSelect: () => onOpen({ act: 'test', of: f }) },
          { text: texts.editFunction, disabled: f.kind !== 'function', needs: 'createFunction',
            onSelect: () => onOpen({ act: 'edit', of: f }) },
          { text: texts.editAsSQL, needs: 'runSQL', onSelect: () => onSQL(f) },
          { text: texts.deleteFunction, danger: true, needs: 'deleteFunction',
            onSelect: () => onOpen({ act: 'delete', of: f }) },
        ]} />
      ) },
    ]} />
  )
}

const argumentsOf = (f: FunctionInfo) =>
  f.parameters.length > 0 ? f.parameters.map((p) => `${p.name} ${p.type}`).join(', ') : f.arguments || 'none'

/** The schemas of functions, for the filter. */
function useSchemas(project: string): string[] {
  const { data } = useFunctions(project)

  return [...new Set(data?.map((f) => f.schema) ?? [])].sort()
}

/** Opens a function's whole definition in the SQL screen. */
function useOpenAsSQL(project: string): (of: FunctionInfo) => void {
  const navigate = useNavigate()

  return (of) => {
    void runSQL(project, { query: definitionQuery, parameters: [signatureOf(of)], readOnly: true, maxRows: 1 })
      .then(({ results }) => navigate({
        to: `/projects/${project}/sql` as string,
        search: { query: textOf(results[0]?.rows[0]?.[0] ?? null) ?? '' } as never,
      }))
      .catch((error: unknown) => toast(error instanceof Error ? error.message : jsonOf(String(error)), 'danger'))
  }
}

function DeleteFunction({ project, of, onClose }: { project: string; of: FunctionInfo; onClose: () => void }) {
  async function remove() {
    const { metadata } = await change(api.DELETE('/functions/{schema}/{functionName}', {
      params: {
        header: inProject(project), path: { schema: of.schema, functionName: of.name },
        query: { arguments: of.arguments.replaceAll(', ', ',') },
      },
    }))
    await queries.invalidateQueries({ queryKey: ['functions', project] })
    const mentions = mentionsOf(metadata)
    if (mentions !== '') toast(texts.deletedNameMentions(of.name, mentions))
  }

  return (
    <Confirm title={texts.deleteOf(signatureOf(of))} open onClose={onClose} action={texts.deleteFunction} name={of.name}
      onSubmit={remove}>
      <p>
        {texts.theFunctionsTextIsLost}
      </p>
    </Confirm>
  )
}
