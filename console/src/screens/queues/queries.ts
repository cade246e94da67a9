import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { readRows, writeRows } from '../../components/ownerSQL'
import { identifier } from '../../components/sqlText'
import { queries } from '../../queries'

export const refreshInterval = 10_000 // ms
export const pageSize = 50 // messages

export interface Queue {
  name: string
  length: number
  visible: number
  oldest: number | null // seconds
  total: number
}

export interface Message {
  id: string
  reads: number
  enqueuedAt: string
  time: string // visible from, or archived at
  isHidden: boolean
  body: string
  headers: string | null
}

export type Kind = 'waiting' | 'archived'

const metrics = 'select queue_name, queue_length, queue_visible_length, oldest_msg_age_sec, total_messages\nfrom pgmq.metrics_all() order by queue_name'

/** Lists the queues with what is in them. */
export function useQueues(project: string) {
  return useQuery({
    queryKey: ['queues', project, 'all'],
    refetchInterval: refreshInterval,
    queryFn: async (): Promise<Queue[]> => (await readRows(project, metrics)).map(([name, length, visible, oldest, total]) => ({
      name: name ?? '', length: Number(length), visible: Number(visible), oldest: oldest === null ? null : Number(oldest), total: Number(total),
    })),
  })
}

/** Returns the table of a queue, or of its archive. */
export const tableOf = (queue: string, kind: Kind) =>
  `pgmq.${identifier(`${kind === 'waiting' ? 'q' : 'a'}_${queue}`.toLowerCase())}`

/** Lists messages by their number: those that wait from the oldest on, those in the archive from the newest. */
export function useMessages(project: string, queue: string, kind: Kind) {
  const newestFirst = kind === 'archived'
  const time = newestFirst ? 'archived_at' : 'vt'

  return useInfiniteQuery({
    queryKey: ['queues', project, 'messages', queue, kind],
    queryFn: async ({ pageParam }): Promise<Message[]> => (await readRows(project, `
select msg_id::text, read_ct, enqueued_at::text, ${time}::text, vt > clock_timestamp(), left(message::text, 20000), left(headers::text, 5000)
from ${tableOf(queue, kind)}
where $1::bigint is null or msg_id ${newestFirst ? '<' : '>'} $1::bigint
order by msg_id ${newestFirst ? 'desc' : ''} limit ${pageSize}`.trim(), [pageParam === '' ? null : pageParam]))
      .map(([id, reads, enqueuedAt, at, hidden, body, headers]) => ({
        id: id ?? '', reads: Number(reads), enqueuedAt: enqueuedAt ?? '', time: at ?? '', isHidden: hidden === 'true', body: body ?? 'null', headers: headers ?? null,
      })),
    initialPageParam: '',
    getNextPageParam: (last) => (last.length < pageSize ? undefined : last.at(-1)?.id),
    refetchInterval: (q) => ((q.state.data?.pages.length ?? 0) <= 1 ? refreshInterval : false),
  })
}

/** Sends an archived message again, whole, as a new one. The archive keeps it. */
export async function sendAgain(project: string, queue: string, id: string): Promise<string | null> {
  const rows = await writeRows(project, `select pgmq.send($1::text, message, headers) from ${tableOf(queue, 'archived')} where msg_id = $2::bigint`,
    [queue, id])
  await queries.invalidateQueries({ queryKey: ['queues', project] })

  return rows[0]?.[0] ?? null
}

/** Calls a function of pgmq, whose arguments are texts with their types. */
export async function call(project: string, name: string, ...args: [value: string, type: string][]): Promise<string | null> {
  const text = args.map(([, type], i) => `$${i + 1}::${type}`).join(', ')
  const rows = await writeRows(project, `select pgmq.${name}(${text})`, args.map(([value]) => value))
  await queries.invalidateQueries({ queryKey: ['queues', project] })

  return rows[0]?.[0] ?? null
}
