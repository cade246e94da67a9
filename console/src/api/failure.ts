import { texts } from '#texts/api'

export interface FieldFailure {
  field: string
  code: string
  message: string
}

interface Metadata {
  code?: string
  detail?: string
  fields?: FieldFailure[]
  requestId?: string
  hint?: string
}

/** A failed request. status is 0 if the server did not answer. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly fields: FieldFailure[]
  readonly requestId: string
  readonly hint: string
  readonly retryAfter: number // seconds; 0: unknown

  constructor(status: number, metadata: Metadata = {}, cause?: unknown, text = '', retryAfter = 0) {
    super(status === 0 ? texts.theServerDoesNotAnswer : metadata.detail || text || texts.status(status), { cause })
    this.name = 'ApiError'
    this.status = status
    this.code = metadata.code ?? ''
    this.fields = metadata.fields ?? []
    this.requestId = metadata.requestId ?? ''
    this.hint = metadata.hint ?? ''
    this.retryAfter = retryAfter
  }

  /** Returns the failure's text for a field of the request's body, or undefined. */
  field(name: string): string | undefined {
    return this.fields.find((f) => f.field === name)?.message
  }
}

/** Reads a failed answer: the platform's envelope, or an application interface's own form. */
export function failureOf(response: Response, answer: unknown): ApiError {
  const a = (answer ?? {}) as { errors?: string[]; metadata?: Metadata; message?: string; msg?: string; code?: string
    hint?: string | null }
  const metadata: Metadata = a.metadata ?? { code: String(a.code ?? ''), detail: a.message ?? a.msg, hint: a.hint ?? '' }
  metadata.requestId ??= response.headers.get('X-Request-Id') ?? ''
  const retryAfter = Number(response.headers.get('Retry-After')) || 0

  return new ApiError(response.status, metadata, undefined, a.errors?.[0], retryAfter)
}
