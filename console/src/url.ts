import { useNavigate, useSearch } from '@tanstack/react-router'

/** A piece of state that lives in the URL's query, so that a view can be sent to a colleague. */
export function useURLState(name: string, initial: string): [string, (next: string) => void] {
  const search = useSearch({ strict: false }) as Record<string, unknown>
  const navigate = useNavigate()
  const value = search[name] === undefined ? initial : String(search[name])

  return [value, (next) => {
    void navigate({
      to: '.',
      replace: true,
      search: ((former: Record<string, unknown>) => {
        const { [name]: _, ...rest } = former
        return next === initial ? rest : { ...rest, [name]: next }
      }) as never,
    })
  }]
}

/** Returns a parameter of the route's path. */
export { useParams } from '@tanstack/react-router'
