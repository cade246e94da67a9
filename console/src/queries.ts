import { QueryClient } from '@tanstack/react-query'
import { ApiError } from './api/failure'

const staleTime = 10_000 // ms
const attempts = 3

/** Reports whether a failed read is worth another attempt. */
export function isTransient(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500 || error.status === 429)
}

export const queries = new QueryClient({
  defaultOptions: {
    queries: { staleTime, retry: (failures, error) => failures < attempts && isTransient(error) },
    mutations: { retry: false },
  },
})
