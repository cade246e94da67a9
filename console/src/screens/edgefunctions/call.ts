/** Test calls of edge functions, without their form. */

import { texts } from '#texts/edgefunctions'

export const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

export interface Answer {
  status: number
  headers: [string, string][]
  body: string
  durationMs: number
}

const shownBody = 100_000 // characters

/** Reads lines such as "X-Name: value". Returns a sentence that says what is wrong with another text. */
export function parseHeaders(text: string): [string, string][] | string {
  const headers: [string, string][] = []
  for (const line of text.split('\n').map((l) => l.trim()).filter((l) => l !== '')) {
    const [, name, value] = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):\s*(.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) return texts.writeAHeaderAsName(line.slice(0, 50))
    headers.push([name, value])
  }

  return headers
}

/** Returns the first characters of a version, which is a hash. */
export const versionText = (version: string) => version.slice(0, 12)

/** Reads an answer, up to what a screen shows. */
export async function readAnswer(response: Response, began: number): Promise<Answer> {
  const body = await response.text()
  return {
    status: response.status,
    headers: [...response.headers.entries()],
    body: body.length > shownBody ? `${body.slice(0, shownBody)}…` : body,
    durationMs: performance.now() - began,
  }
}
