import { useMemo, useState } from 'react'
import { useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/extensions'
import { api, inProject, read, type Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { change } from '../../components/change'
import { Confirm, FormDialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Page } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { queries } from '../../queries'
import { useURLState } from '../../url'

type Extension = Schemas['Extension']
type Opened = { act: 'install' | 'remove'; extension: Extension } | null

const most = 100 // of a page; a server has fewer

/** Types, functions and operators beside those of PostgreSQL. */
export function Extensions() {
  const { project } = useParams({ strict: false }) as { project: string }
  const [search, setSearch] = useURLState('search', '')
  const [opened, setOpened] = useState<Opened>(null)
  const query = useQuery({
    queryKey: ['extensions', project],
    queryFn: () => read(api.GET('/extensions', { params: { header: inProject(project), query: { limit: most } } })),
  })

  return (
    <Page title={texts.extensions} lead={texts.typesFunctionsAndOperatorsThat}>
      <TextField label={texts.searchByNameOrDescription} type="search" value={search}
        onChange={(e) => setSearch(e.target.value)} />
      <Loaded query={query}>
        {({ content }) => {
          const shown = content.filter((e) => matches(e, search)).sort(installedFirst)
          return shown.length === 0
            ? <Empty title={texts.noExtensionMatches}>{texts.onlyAnOperatorInstallsOther}</Empty>
            : <List extensions={shown} onOpen={setOpened} />
        }}
      </Loaded>
      {opened?.act === 'install' && (
        <Install project={project} extension={opened.extension} onClose={() => setOpened(null)} />
      )}
      {opened?.act === 'remove' && (
        <Remove project={project} extension={opened.extension} onClose={() => setOpened(null)} />
      )}
    </Page>
  )
}

const isInstalled = (e: Extension) => e.installedVersion !== null
const installedFirst = (a: Extension, b: Extension) => Number(isInstalled(b)) - Number(isInstalled(a))
const matches = (e: Extension, search: string) =>
  `${e.name} ${e.description}`.toLowerCase().includes(search.trim().toLowerCase())

function List({ extensions, onOpen }: { extensions: Extension[]; onOpen: (opened: Opened) => void }) {
  return (
    <Table label={texts.extensions} rows={extensions} keyOf={(e) => e.name} columns={[
      { title: texts.name, cell: (e) => <code>{e.name}</code> },
      { title: texts.description, narrow: true, cell: (e) => e.description },
      { title: texts.state, cell: (e) => isInstalled(e)
        ? <Badge tone="success">{texts.installedVersionInSchema(e.installedVersion, e.schema)}</Badge>
        : <Badge>{texts.availableVersion(e.version !== null && `: ${e.version}`)}</Badge> },
      { title: texts.actions, align: 'right', cell: (e) => isInstalled(e)
        ? <Button needs="deleteExtension" look="danger" aria-label={texts.removeName(e.name)}
            onClick={() => onOpen({ act: 'remove', extension: e })}>{texts.remove}</Button>
        : <Button needs="createExtension" aria-label={texts.installName(e.name)}
            onClick={() => onOpen({ act: 'install', extension: e })}>{texts.install}</Button> },
    ]} />
  )
}

interface Props {
  project: string
  extension: Extension
  onClose: () => void
}

function Install({ project, extension, onClose }: Props) {
  const key = useMemo(() => crypto.randomUUID(), [])

  async function install() {
    await change(api.POST('/extensions', {
      params: { header: inProject(project) }, headers: { 'Idempotency-Key': key }, body: { name: extension.name },
    }))
    await queries.invalidateQueries({ queryKey: ['extensions', project] })
  }

  return (
    <FormDialog title={texts.installName(extension.name)} open onClose={onClose} action={texts.installExtension} onSubmit={install}>
      <p>{extension.description}</p>
      <p>
        {texts.itIsInstalledIntoThe(<code>extensions</code>)}
      </p>
    </FormDialog>
  )
}

function Remove({ project, extension, onClose }: Props) {
  async function remove() {
    await change(api.DELETE('/extensions/{extensionName}', {
      params: { header: inProject(project), path: { extensionName: extension.name } },
    }))
    await queries.invalidateQueries({ queryKey: ['extensions', project] })
  }

  return (
    <Confirm title={texts.removeName(extension.name)} open onClose={onClose} action={texts.removeExtension} onSubmit={remove}>
      <p>
        {texts.theTypesFunctionsAndOperators(extension.name)}
      </p>
    </Confirm>
  )
}
