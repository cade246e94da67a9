/** Uploads with progress, and downloads with the session's token. */

import { texts } from '#texts/components'
import { send } from '../api/client'
import { ApiError, failureOf } from '../api/failure'
import { accessToken } from '../api/session'

export interface Upload {
  method: string
  path: string
  headers: Record<string, string>
  body: FormData | Blob
  onProgress: (sent: number, total: number) => void
  signal?: AbortSignal
}

/** Sends a body and reports its progress, which fetch does not. Returns the answer's JSON. */
export async function upload({ method, path, headers, body, onProgress, signal }: Upload): Promise<unknown> {
  const token = await accessToken()

  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open(method, path)
    request.setRequestHeader('Authorization', `Bearer ${token}`)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)

    request.upload.onprogress = (e) => onProgress(e.loaded, e.total)
    request.onerror = () => reject(new ApiError(0))
    request.onabort = () => reject(new DOMException(texts.theUploadWasCanceled, 'AbortError'))
    request.onload = () => {
      const answer = parse(request.responseText)
      if (request.status >= 200 && request.status < 300) resolve(answer)
      else reject(failureOf(new Response(null, { status: request.status, headers: headersOf(request) }), answer))
    }

    signal?.addEventListener('abort', () => request.abort())
    request.send(body)
  })
}

/** Reads bytes; throws an ApiError for a failure. */
export async function download(path: string, init?: RequestInit): Promise<Blob> {
  const response = await send(new URL(path, location.origin).href, init)
  if (!response.ok) throw failureOf(response, parse(await response.text()))

  return response.blob()
}

/** Saves bytes as a file of the person's computer. They are never opened as a page. */
export function saveAs(bytes: Blob, name: string): void {
  const url = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

/** Saves a text as a file of the person's computer. */
export function saveText(text: string, name: string): void {
  saveAs(new Blob([text]), name)
}

function headersOf(request: XMLHttpRequest): Record<string, string> {
  const id = request.getResponseHeader('X-Request-Id')
  return id === null ? {} : { 'X-Request-Id': id }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
