import { useEffect, useState } from 'react'
import { useNavigate, useSearch } from '@tanstack/react-router'

const quiet = 250 // ms without a key before the URL follows

interface Typed {
  typed: string // in the control
  settled: string // in the URL
  onType: (text: string) => void
}

/** A filter of the URL's query that a person types: no request for each key, and back to page 1. */
export function useTypedURLState(name: string): Typed {
  const [settled, settle] = useFilter(name)
  const [typed, setTyped] = useState(settled)

  useEffect(() => {
    if (typed === settled) return
    const timer = setTimeout(() => settle(typed), quiet)
    return () => clearTimeout(timer)
  })

  return { typed, settled, onType: setTyped }
}

/** A filter of the URL's query. A change of it leads back to page 1. */
export function useFilter(name: string): [string, (next: string) => void] {
  const search = useSearch({ strict: false }) as Record<string, unknown>
  const navigate = useNavigate()

  return [search[name] === undefined ? '' : String(search[name]), (next) => {
    void navigate({
      to: '.',
      replace: true,
      search: ((former: Record<string, unknown>) => {
        const { [name]: _, page: __, ...rest } = former
        return next === '' ? rest : { ...rest, [name]: next }
      }) as never,
    })
  }]
}
