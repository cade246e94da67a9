/** Whole lists that fields of several screens choose from. */

import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../api/client'
import { allItems, pageLimit } from './pages'

/** Lists the enums of a project. */
export function useEnums(project: string) {
  return useQuery({
    queryKey: ['enums', project, 'all'],
    queryFn: () => allItems((page) => read(api.GET('/enums', {
      params: { header: inProject(project), query: { page, limit: pageLimit } },
    }))),
  })
}

/** Lists the functions in a project's database. */
export function useFunctions(project: string) {
  return useQuery({
    queryKey: ['functions', project, 'all'],
    queryFn: () => allItems((page) => read(api.GET('/functions', {
      params: { header: inProject(project), query: { page, limit: pageLimit } },
    }))),
  })
}

/** Lists the file containers of a project, by name. */
export function useContainers(project: string) {
  return useQuery({
    queryKey: ['containers', project, 'all'],
    queryFn: () => allItems((page) => read(api.GET('/containers', {
      params: { header: inProject(project), query: { page, limit: pageLimit, sort: 'name' } },
    }))),
  })
}
