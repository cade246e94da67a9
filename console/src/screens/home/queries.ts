import { useQuery } from '@tanstack/react-query'
import { api, read } from '../../api/client'

const path = (project: string) => ({ path: { projectUUID: project } })

export const useProject = (project: string) => useQuery({
  queryKey: ['project', project],
  queryFn: () => read(api.GET('/projects/{projectUUID}', { params: path(project) })),
})

export const useStatistics = (project: string, enabled: boolean) => useQuery({
  queryKey: ['statistics', project],
  enabled,
  queryFn: () => read(api.GET('/projects/{projectUUID}/statistics', { params: path(project) })),
})

export const useQuota = (project: string, enabled: boolean) => useQuery({
  queryKey: ['quota', project],
  enabled,
  queryFn: () => read(api.GET('/projects/{projectUUID}/quota', { params: path(project) })),
})

export const useFindings = (project: string, enabled: boolean) => useQuery({
  queryKey: ['lint', project],
  enabled,
  queryFn: () => read(api.GET('/projects/{projectUUID}/lint', { params: path(project) })),
})

export const useKeys = (project: string, enabled: boolean) => useQuery({
  queryKey: ['keys', project, 'newest'],
  enabled,
  queryFn: () => read(api.GET('/projects/{projectUUID}/keys', {
    params: { ...path(project), query: { limit: 100, sort: 'createdAt', order: 'desc' } },
  })),
})

export const useFailedRequests = (project: string) => useQuery({
  queryKey: ['requests', project, 'failed'],
  queryFn: () => read(api.GET('/projects/{projectUUID}/requests', {
    params: { ...path(project), query: { minStatus: 400, limit: 5 } },
  })),
})
