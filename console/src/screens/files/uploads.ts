/** Uploads of one screen: a few at a time, each with its progress. */

import { useCallback, useEffect, useReducer, useRef } from 'react'
import { inProject } from '../../api/client'
import { upload } from '../../components/transfer'

const concurrency = 3

export interface Pending {
  file: File
  fullName: string
}

export interface UploadState extends Pending {
  id: number
  status: 'waiting' | 'running' | 'done' | 'failed' | 'canceled'
  sent: number
  error: unknown
  replaces: boolean // writes over a file of the same name
}

type Change =
  | { kind: 'add'; uploads: UploadState[] }
  | { kind: 'set'; id: number; patch: Partial<UploadState> }
  | { kind: 'clear' }

export function reduce(state: UploadState[], change: Change): UploadState[] {
  switch (change.kind) {
    case 'add':
      return [...state, ...change.uploads]
    case 'set':
      return state.map((u) => (u.id === change.id ? { ...u, ...change.patch } : u))
    case 'clear':
      return state.filter((u) => u.status === 'waiting' || u.status === 'running')
  }
}

/** Returns the uploads to start now. */
export function startable(state: UploadState[]): UploadState[] {
  const running = state.filter((u) => u.status === 'running').length
  return state.filter((u) => u.status === 'waiting').slice(0, Math.max(0, concurrency - running))
}

let lastID = 0

/** Keeps the uploads into a container; onDone runs after each that ends well. */
export function useUploads(project: string, container: string, onDone: () => void) {
  const [state, dispatch] = useReducer(reduce, [])
  const controllers = useRef(new Map<number, AbortController>())
  const done = useRef(onDone)
  useEffect(() => {
    done.current = onDone
  })

  useEffect(() => {
    for (const u of startable(state)) {
      if (controllers.current.has(u.id)) continue // already started

      const controller = new AbortController()
      controllers.current.set(u.id, controller)
      dispatch({ kind: 'set', id: u.id, patch: { status: 'running', error: null, sent: 0 } })
      send(project, container, u, controller.signal, (sent) => dispatch({ kind: 'set', id: u.id, patch: { sent } }))
        .then(() => {
          dispatch({ kind: 'set', id: u.id, patch: { status: 'done', sent: u.file.size } })
          done.current()
        })
        .catch((error: unknown) => {
          const status = controller.signal.aborted ? 'canceled' : 'failed'
          dispatch({ kind: 'set', id: u.id, patch: { status, error } })
        })
        .finally(() => controllers.current.delete(u.id))
    }
  }, [state, project, container])

  const busy = state.some((u) => u.status === 'waiting' || u.status === 'running')
  useEffect(() => {
    if (!busy) return
    const warn = (e: BeforeUnloadEvent) => e.preventDefault()
    addEventListener('beforeunload', warn)
    return () => removeEventListener('beforeunload', warn)
  }, [busy])

  const add = useCallback((files: Pending[]) => dispatch({
    kind: 'add',
    uploads: files.map((f) => ({ ...f, id: ++lastID, status: 'waiting', sent: 0, error: null, replaces: false })),
  }), [])
  const retry = useCallback((id: number, replaces: boolean) => (
    dispatch({ kind: 'set', id, patch: { status: 'waiting', replaces } })
  ), [])
  const cancel = useCallback((id: number) => {
    controllers.current.get(id)?.abort()
    dispatch({ kind: 'set', id, patch: { status: 'canceled' } })
  }, [])
  const clear = useCallback(() => dispatch({ kind: 'clear' }), [])

  return { uploads: state, add, retry, cancel, clear }
}

function send(project: string, container: string, u: UploadState, signal: AbortSignal, progress: (n: number) => void) {
  if (u.replaces) {
    const name = u.fullName.split('/').map(encodeURIComponent).join('/')
    return upload({
      method: 'PUT', path: `/files/${project}/${container}/${name}`, body: u.file,
      headers: { 'Content-Type': u.file.type || 'application/octet-stream' }, onProgress: progress, signal,
    })
  }

  const body = new FormData()
  body.append('full_file_name', u.fullName) // the API reads it before the bytes
  body.append('file', u.file)

  return upload({
    method: 'POST', path: `/containers/${container}/files`, body, headers: inProject(project), onProgress: progress, signal,
  })
}

/** Returns the files of a drop, with those in dropped folders. */
export async function droppedFiles(items: DataTransferItemList, folder: string): Promise<Pending[]> {
  // The items are readable only until the first await.
  const roots = Array.from(items, (item) => item.webkitGetAsEntry() ?? item.getAsFile()).filter((r) => r !== null)
  const found: Pending[] = []
  for (const root of roots) {
    if (root instanceof File) found.push({ file: root, fullName: folder + root.name })
    else await collect(root, folder, found)
  }

  return found
}

async function collect(entry: FileSystemEntry, folder: string, found: Pending[]): Promise<void> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))
    found.push({ file, fullName: folder + file.name })
    return
  }

  const reader = (entry as FileSystemDirectoryEntry).createReader()
  for (;;) { // a reader returns at most 100 entries at a time
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
    if (some.length === 0) return
    for (const child of some) await collect(child, `${folder}${entry.name}/`, found)
  }
}
