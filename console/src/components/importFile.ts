/** Files to import: sent with progress, which fetch does not tell. */

import { texts } from '#texts/components'
import { ApiError, failureOf } from '../api/failure'
import { record } from '../api/log'
import { accessToken } from '../api/session'
import type { Schemas } from '../api/client'

export interface Imported {
  table: string
  columns: Schemas['ImportedColumn'][]
  rows: number
  rejected: number
  rejectedLines: Schemas['Rejected'][]
  notes: Schemas['Note'][]
  dryRun: boolean
}

/** An import that the API refused, with the lines that it could not store. */
export class ImportError extends ApiError {
  readonly lines: Schemas['Rejected'][]

  constructor(failure: ApiError, lines: Schemas['Rejected'][]) {
    super(failure.status, {
      code: failure.code, detail: failure.message, fields: failure.fields, requestId: failure.requestId,
    })
    this.lines = lines
  }
}

const types: Record<string, string> = {
  csv: 'text/csv', tsv: 'text/tab-separated-values', json: 'application/json', jsonl: 'application/x-ndjson',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
}

const aliases = new Map([['txt', 'csv'], ['ndjson', 'jsonl'], ['tab', 'tsv']])

/** Returns the format by a file's name; '' if it is not known. */
export function formatOf(name: string): string {
  const end = name.toLowerCase().split('.').at(-1) ?? ''
  return aliases.get(end) ?? (Object.hasOwn(types, end) ? end : '')
}

/** Returns a name for a table by that of a file. */
export function tableNameOf(file: string): string {
  const name = file.replace(/\.[^.]*$/, '').normalize('NFD').replace(/\p{M}/gu, '').replace(/[^A-Za-z0-9_]+/g, '_').replace(/^_+|_+$/g, '').toLowerCase()
  return (/^\d/.test(name) ? `t_${name}` : name).slice(0, 63)
}

/** Sends a file; progress gets the sent part, from 0 to 1. */
export async function upload(project: string, path: string, query: Record<string, string>, file: File,
  progress: (part: number) => void, signal: AbortSignal): Promise<Imported> {
  const token = await accessToken()
  const url = `${location.origin}${path}?${new URLSearchParams(query).toString()}`
  const headers = new Headers({ 'X-Project': project, 'Content-Type': types[query.format ?? ''] ?? 'application/octet-stream' })

  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', url)
    headers.forEach((value, name) => request.setRequestHeader(name, value))
    request.setRequestHeader('Authorization', `Bearer ${token}`)
    request.upload.onprogress = (e) => e.lengthComputable && progress(e.loaded / e.total)
    request.onerror = () => reject(new ApiError(0))
    request.onabort = () => reject(new Error(texts.theImportWasCanceled))
    request.onload = () => {
      record({ method: 'POST', url, headers, body: '', status: request.status })
      const answer = parse(request.responseText)
      if (request.status < 300) resolve(answer.content as Imported)
      else reject(failed(request, answer))
    }
    signal.addEventListener('abort', () => request.abort())
    request.send(file)
  })
}

interface Answer {
  content?: unknown
  metadata?: { rejectedLines?: Schemas['Rejected'][] }
}

function failed(request: XMLHttpRequest, answer: Answer): ImportError {
  const response = new Response(null, {
    status: request.status, headers: { 'X-Request-Id': request.getResponseHeader('X-Request-Id') ?? '' },
  })
  return new ImportError(failureOf(response, answer), answer.metadata?.rejectedLines ?? [])
}

function parse(text: string): Answer {
  try {
    return JSON.parse(text) as Answer
  } catch {
    return {}
  }
}
