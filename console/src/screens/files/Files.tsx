import { useRef, useState, type DragEvent } from 'react'
import { Link, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/files'
import { api, inProject, read, sendJSON } from '../../api/client'
import { formatBytes, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { SelectField, TextField } from '../../components/Field'
import { FilterBar, FilterField, useFilters } from '../../components/Filters'
import { Menu, type MenuItem } from '../../components/Menu'
import { Page, Row } from '../../components/Page'
import { useRefusal } from '../../components/rights'
import { Empty, Failure, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { ContainerForm } from './ContainerForm'
import { DeleteFiles, DeleteFolder, MoveFile, SignFile, type FileAct } from './acts'
import { entriesOf, normalFolder, trail, type Entry, type FileEntry, type ListedObject } from './folders'
import { FilePreview } from './FilePreview'
import { saveFile } from './read'
import { UploadList } from './UploadList'
import { droppedFiles, useUploads } from './uploads'
import css from './Files.module.css'

const pageSize = 100

const sorts = {
  name: { column: 'name', order: 'asc', text: texts.name },
  newest: { column: 'created_at', order: 'desc', text: texts.newestFirst },
  changed: { column: 'updated_at', order: 'desc', text: texts.lastChanged },
} as const

/** The files and folders of a container. */
export function Files() {
  const { project, container } = useParams({ strict: false }) as { project: string; container: string }
  const [edits, setEdits] = useState(false)
  const query = useQuery({
    queryKey: ['containers', project, 'one', container],
    queryFn: () => read(api.GET('/containers/{containerUUID}', {
      params: { header: inProject(project), path: { containerUUID: container } },
    })),
  })
  const c = query.data?.content

  return (
    <Page title={c?.name ?? texts.files} lead={c && (
      <>
        {texts.totalFilesUpToMaxFileSizeEach(c.totalFiles.toLocaleString(), c.totalFiles === 1 ? texts.file2 : texts.files2, formatBytes(c.maxFileSize), c.isPublic ? texts.readableByEveryone : texts.readableByPolicy)}
      </>
    )} actions={c && <Button needs="updateContainer" onClick={() => setEdits(true)}>{texts.editContainer}</Button>}>
      <Loaded query={query}>{({ content }) => <Browser project={project} container={container} bucket={content.name} />}</Loaded>
      {edits && <ContainerForm project={project} uuid={container} onClose={() => setEdits(false)} />}
    </Page>
  )
}

interface BrowserProps {
  project: string
  container: string
  bucket: string
}

function Browser({ project, container, bucket }: BrowserProps) {
  const [filters, setFilters] = useFilters('folder', 'search', 'sort', 'page', 'file')
  const folder = normalFolder(filters.folder)
  const page = Number(filters.page) || 1
  const sort = sorts[filters.sort as keyof typeof sorts] ?? sorts.name
  const [drags, setDrags] = useState(false)
  const [act, setAct] = useState<FileAct | null>(null)
  const [namesFolder, setNamesFolder] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  const refusal = useRefusal('writeFiles')
  const refresh = () => {
    void queries.invalidateQueries({ queryKey: ['files', project, container] })
    void queries.invalidateQueries({ queryKey: ['containers', project] })
  }
  const { uploads, add, retry, cancel, clear } = useUploads(project, container, refresh)
  const query = useQuery({
    queryKey: ['files', project, container, folder, filters.search, sort.column, sort.order, page],
    queryFn: () => sendJSON<ListedObject[]>(`/projects/${project}/storage/v1/object/list/${encodeURIComponent(bucket)}`, {
      method: 'POST',
      json: {
        prefix: folder, search: filters.search, limit: pageSize + 1, offset: (page - 1) * pageSize,
        sortBy: { column: sort.column, order: sort.order },
      },
    }),
    placeholderData: (former, query) => (query?.queryKey[3] === folder ? former : undefined),
  })

  async function drop(e: DragEvent) {
    e.preventDefault()
    setDrags(false)
    if (refusal !== undefined) return toast(refusal, 'danger')
    add(await droppedFiles(e.dataTransfer.items, folder))
  }

  function choose(files: FileList | null) {
    add(Array.from(files ?? [], (file) => ({ file, fullName: folder + file.name })))
    if (input.current) input.current.value = '' // the same file can be chosen again
  }

  const upload = <Button needs="writeFiles" look="primary" onClick={() => input.current?.click()}>{texts.uploadFiles}</Button>
  return (
    <div className={css.drop} data-drags={drags || undefined} onDrop={(e) => void drop(e)}
      onDragOver={(e) => {
        e.preventDefault()
        setDrags(true)
      }}
      onDragLeave={(e) => !e.currentTarget.contains(e.relatedTarget as Node | null) && setDrags(false)}>
      <div className={css.bar}>
        <Trail project={project} container={container} bucket={bucket} folder={folder} />
        <Row>
          <Button needs="writeFiles" onClick={() => setNamesFolder(true)}>{texts.newFolder}</Button>
          {upload}
        </Row>
        <input ref={input} type="file" multiple hidden aria-label={texts.filesToUpload} onChange={(e) => choose(e.target.files)} />
      </div>
      <UploadList uploads={uploads} retry={retry} cancel={cancel} clear={clear} />
      <FilterBar>
        <FilterField label={texts.searchInThisFolder} value={filters.search}
          onChange={(search) => setFilters({ search, page: '' })} />
        <SelectField label={texts.order} value={filters.sort} onChange={(e) => setFilters({ sort: e.target.value, page: '' })}>
          {Object.entries(sorts).map(([name, s]) => <option key={name} value={name === 'name' ? '' : name}>{s.text}</option>)}
        </SelectField>
      </FilterBar>
      {query.data === undefined && query.error !== null ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : (
        <Loaded query={query}>
          {(objects) => objects.length === 0 ? (
            <Empty title={filters.search === '' ? texts.noFileHere : texts.noNameMatches} action={upload}>
              {texts.dragFilesOntoThisPage}
            </Empty>
          ) : (
            <>
              <FileTable project={project} container={container} folder={folder} entries={entriesOf(objects.slice(0, pageSize))}
                onAct={setAct} onOpen={(file) => setFilters({ file })}
                onFolder={(next) => setFilters({ folder: next, search: '', page: '' })} />
              <Pages page={page} more={objects.length > pageSize} onPage={(n) => setFilters({ page: n === 1 ? '' : String(n) })} />
            </>
          )}
        </Loaded>
      )}
      {filters.file !== '' && (
        <FilePreview project={project} container={container} uuid={filters.file} onAct={setAct}
          onClose={() => setFilters({ file: '' })} />
      )}
      {namesFolder && (
        <NewFolder onClose={() => setNamesFolder(false)}
          onName={(name) => setFilters({ folder: normalFolder(folder + name), search: '', page: '' })} />
      )}
      <Acts act={act} project={project} container={container} bucket={bucket} onClose={() => setAct(null)} onDone={() => {
        if (act?.kind === 'delete' && filters.file !== '') setFilters({ file: '' })
        refresh()
      }} />
    </div>
  )
}

function Acts({ act, onClose, onDone, ...where }: BrowserProps & {
  act: FileAct | null
  onClose: () => void
  onDone: () => void
}) {
  switch (act?.kind) {
    case 'move':
    case 'copy':
      return <MoveFile {...where} act={act} onClose={onClose} onDone={onDone} />
    case 'sign':
      return <SignFile {...where} file={act.file} onClose={onClose} />
    case 'delete':
      return <DeleteFiles {...where} files={act.files} onClose={onClose} onDone={onDone} />
    case 'deleteFolder':
      return <DeleteFolder {...where} folder={act.folder} onClose={onClose} onDone={onDone} />
    default:
      return null
  }
}

function FileTable({ project, container, folder, entries, onAct, onOpen, onFolder }: {
  project: string
  container: string
  folder: string
  entries: Entry[]
  onAct: (act: FileAct) => void
  onOpen: (file: string) => void
  onFolder: (folder: string) => void
}) {
  const [chosen, setChosen] = useState<Set<string>>(new Set())
  const files = entries.filter((e): e is FileEntry => e.kind === 'file')
  const chosenFiles = files.filter((f) => chosen.has(f.uuid)).map((f) => ({ uuid: f.uuid, fullName: folder + f.name }))

  function actsFor(e: Entry): MenuItem[] {
    if (e.kind === 'folder') {
      return [{ text: texts.deleteFolder, danger: true, needs: 'deleteFolder',
        onSelect: () => onAct({ kind: 'deleteFolder', folder: `${folder}${e.name}/` }) }]
    }

    const file = { uuid: e.uuid, fullName: folder + e.name }
    return [
      { text: texts.download, onSelect: () => void saveFile(project, container, { ...file, size: e.size }) },
      { text: texts.renameOrMove, needs: 'updateFile', onSelect: () => onAct({ kind: 'move', file }) },
      { text: texts.copyFile, needs: 'writeFiles', onSelect: () => onAct({ kind: 'copy', file }) },
      { text: texts.createSignedURL, onSelect: () => onAct({ kind: 'sign', file }) },
      { text: texts.deleteFile, danger: true, needs: 'deleteFile', onSelect: () => onAct({ kind: 'delete', files: [file] }) },
    ]
  }

  return (
    <>
      {chosenFiles.length > 0 && (
        <Row>
          <span>{texts.countChosen(chosenFiles.length)}</span>
          <Button needs="deleteFile" look="danger" onClick={() => onAct({ kind: 'delete', files: chosenFiles })}>
            {texts.deleteFiles}
          </Button>
          <Button look="quiet" onClick={() => setChosen(new Set())}>{texts.chooseNone}</Button>
        </Row>
      )}
      <Table label={texts.files} rows={entries} keyOf={(e) => `${e.kind} ${e.name}`}
        onOpen={(e) => (e.kind === 'folder' ? onFolder(`${folder}${e.name}/`) : onOpen(e.uuid))}
        columns={[
          { title: texts.choose, cell: (e) => e.kind === 'file' && (
            <input type="checkbox" aria-label={texts.chooseName(e.name)} checked={chosen.has(e.uuid)}
              onClick={(event) => event.stopPropagation()}
              onChange={() => setChosen((former) => {
                const next = new Set(former)
                if (!next.delete(e.uuid)) next.add(e.uuid)
                return next
              })} />
          ) },
          { title: texts.name, cell: (e) => (
            <button type="button" className={css.open}
              onClick={() => (e.kind === 'folder' ? onFolder(`${folder}${e.name}/`) : onOpen(e.uuid))}>
              <span aria-hidden="true">{e.kind === 'folder' ? '▸ ' : ''}</span>
              {e.name}
              {e.kind === 'folder' && '/'}
            </button>
          ) },
          { title: texts.type, cell: (e) => (e.kind === 'file' ? e.mimeType : 'folder'), narrow: true },
          { title: texts.size, cell: (e) => e.kind === 'file' && formatBytes(e.size), align: 'right' },
          { title: texts.changed, cell: (e) => e.kind === 'file' && <Time at={e.updatedAt} />, narrow: true },
          { title: texts.actions, cell: (e) => <Menu label={texts.actionsForName(e.name)} items={actsFor(e)} />, align: 'right' },
        ]} />
    </>
  )
}

function Trail({ project, container, bucket, folder }: BrowserProps & { folder: string }) {
  const to = `/projects/${project}/files/${container}` as string

  return (
    <nav className={css.trail} aria-label={texts.folder}>
      <Link to={`/projects/${project}/files` as string}>{texts.files}</Link> /{' '}
      <Link to={to} search={{} as never}>{bucket}</Link> /{' '}
      {trail(folder).map(([name, path]) => (
        <span key={path}>
          <Link to={to} search={{ folder: path } as never}>{name}</Link> /{' '}
        </span>
      ))}
    </nav>
  )
}

function Pages({ page, more, onPage }: { page: number; more: boolean; onPage: (n: number) => void }) {
  if (page === 1 && !more) return null

  return (
    <Row>
      <Button disabled={page === 1} onClick={() => onPage(page - 1)}>{texts.previous}</Button>
      <span>{texts.page(page)}</span>
      <Button disabled={!more} onClick={() => onPage(page + 1)}>{texts.next}</Button>
    </Row>
  )
}

function NewFolder({ onName, onClose }: { onName: (name: string) => void; onClose: () => void }) {
  const [name, setName] = useState('')

  return (
    <FormDialog title={texts.newFolder} open onClose={onClose} action={texts.openFolder} disabled={normalFolder(name) === ''}
      onSubmit={async () => onName(name)}>
      <TextField label={texts.name} value={name} autoFocus hint={texts.aFolderExistsWhileIt}
        onChange={(e) => setName(e.target.value)} />
    </FormDialog>
  )
}
