import { useNavigate, useSearch } from '@tanstack/react-router'

/** The screen's state in the URL. */
export interface Search {
  tab?: string | undefined
  panel?: string | undefined // history or saved
  as?: string | undefined // whom statements run as; the owner without
  query?: string | undefined // a text that another screen sent
}

/** Returns the state and a function that changes several members at once. */
export function useSQLSearch(): [Search, (part: Search) => void] {
  const { tab, panel, as, query } = useSearch({ strict: false }) as Record<string, unknown>
  const navigate = useNavigate()
  const text = (value: unknown) => (value === undefined ? undefined : String(value))

  return [{ tab: text(tab), panel: text(panel), as: text(as), query: text(query) }, (part) => {
    void navigate({
      to: '.', replace: true, search: ((former: Record<string, unknown>) => ({ ...former, ...part })) as never,
    })
  }]
}
