/** What a restore in place would lose: counts of what was made since the backup. */

import { texts } from '#texts/backups'
import { api, inProject, read } from '../../api/client'

const sample = 100 // the largest page of the API

export interface Loss {
  text: string
  count: number
  atLeast: boolean // there may be more
}

/** Counts what changed in a project since a time. A count that cannot be read is left out. */
export async function lossesSince(project: string, since: string): Promise<Loss[]> {
  const counts = await Promise.allSettled([
    changesSince(project, since), usersSince(project, since), writesSince(project, since), responsesSince(project, since),
  ])

  return counts.filter((c) => c.status === 'fulfilled').map((c) => c.value).filter((l) => l.count > 0)
}

/** Returns a loss as "at least 100 new users". */
export function lossText(l: Loss): string {
  const [one, many] = l.text.split('|')
  return `${l.atLeast ? texts.atLeast : ''}${l.count.toLocaleString()} ${l.count === 1 ? one : many}`
}

async function changesSince(project: string, from: string): Promise<Loss> {
  const { metadata } = await read(api.GET('/projects/{projectUUID}/audit', {
    params: { path: { projectUUID: project }, query: { log: 'data', from, limit: 1 } },
  }))

  return { text: texts.changeByMembersInThe, count: metadata.total, atLeast: false }
}

async function usersSince(project: string, from: string): Promise<Loss> {
  const { content } = await read(api.GET('/projects/{projectUUID}/end-users', {
    params: { path: { projectUUID: project }, query: { sort: 'createdAt', order: 'desc', limit: sample } },
  }))
  const count = content.filter((u) => Date.parse(u.createdAt) >= Date.parse(from)).length

  return { text: texts.newUserNewUsers, count, atLeast: count === sample }
}

async function writesSince(project: string, from: string): Promise<Loss> {
  let count = 0
  let atLeast = false
  for (const method of ['POST', 'PATCH', 'PUT', 'DELETE']) {
    const { content, metadata } = await read(api.GET('/projects/{projectUUID}/requests', {
      params: { path: { projectUUID: project }, query: { from, method, status: '2xx', route: '/rest/v1', limit: sample } },
    }))
    count += content.filter((r) => r.rows !== 0).length
    atLeast ||= metadata.next !== null
  }

  return { text: texts.requestThatWroteRowsRequests, count, atLeast }
}

async function responsesSince(project: string, from: string): Promise<Loss> {
  const { content: forms } = await read(api.GET('/forms', { params: { header: inProject(project), query: { limit: sample } } }))
  const totals = await Promise.all(forms.filter((f) => f.totalResponses > 0).slice(0, 20).map(async (f) => {
    const { metadata } = await read(api.GET('/forms/{formUUID}/responses', {
      params: { path: { formUUID: f.uuid }, query: { from, limit: 1 } },
    }))
    return metadata.total
  }))

  return { text: texts.formResponseFormResponses, count: totals.reduce((sum, n) => sum + n, 0), atLeast: forms.length > 20 }
}
