/** The platform API, typed by its OpenAPI document. */

import createClient from 'openapi-fetch'
import { ApiError, failureOf } from './failure'
import { accessToken, refresh } from './session'
import { record } from './log'
import type { components, paths } from './schema'

export { ApiError } from './failure'
export type Schemas = components['schemas']

/** A typed client: `read(api.GET('/projects', { params: … }))`. */
export const api = createClient<paths>({ fetch: send })

/** Awaits a call and returns its envelope; throws an ApiError for a failure. */
export async function read<D>(
  call: Promise<{ data?: D; error?: unknown; response: Response }>,
): Promise<NonNullable<D>> {
  const { data, error, response } = await call
  if (!response.ok || data === undefined || data === null) throw failureOf(response, error)

  return data
}

/** Sends a request of any path with the session's token, such as to a project's rows. */
export async function send(input: Request | string, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init)
  const body = await bodyOf(request)
  const token = await accessToken()

  let response = await attempt(request.clone(), token)
  if (response.status === 401 && token !== '' && !isRefusedCaller(response)) {
    const next = await refresh(token) // revoked or expired meanwhile
    if (next !== '' && next !== token) response = await attempt(request.clone(), next)
  }

  record({ method: request.method, url: request.url, headers: request.headers, body, status: response.status })

  return response
}

/** Reports whether the database refused the caller that the request stands for; the session is fine. */
const isRefusedCaller = (response: Response) => response.headers.get('Proxy-Status')?.includes('error=42501') ?? false

/** Sends a request and returns its JSON; throws an ApiError for a failure. */
export async function sendJSON<T>(path: string, init: RequestInit & { json?: unknown } = {}): Promise<T> {
  const { json, ...rest } = init
  const headers = new Headers(rest.headers)
  if (json !== undefined) {
    headers.set('Content-Type', 'application/json')
    rest.body = JSON.stringify(json)
  }

  const response = await send(new URL(path, location.origin).href, { ...rest, headers })
  const text = await response.text()
  const answer: unknown = text === '' ? null : parse(text)
  if (!response.ok) throw failureOf(response, answer)

  return answer as T
}

/** The header that names the project of an operation. */
export const inProject = (project: string) => ({ 'X-Project': project })

async function attempt(request: Request, token: string): Promise<Response> {
  if (token !== '') request.headers.set('Authorization', `Bearer ${token}`)

  try {
    return await fetch(request)
  } catch (cause) {
    if (request.signal.aborted) throw cause
    throw new ApiError(0, undefined, cause)
  }
}

async function bodyOf(request: Request): Promise<string> {
  const type = request.headers.get('Content-Type') ?? ''
  return type.startsWith('application/json') ? request.clone().text() : ''
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
