import { useEffect, useRef } from 'react'
import type { Chart } from './chart'
import css from './Plot.module.css'

/** A chart: the values under the pointer stand in its legend, dragging zooms, a double click shows all. */
export function Plot({ label, chart }: { label: string; chart: Chart }) {
  const root = useRef<HTMLDivElement>(null)

  useEffect(() => {
    let end: (() => void) | undefined
    let gone = false
    void import('./chart').then(({ draw }) => {
      if (!gone && root.current) end = draw(root.current, chart)
    })

    return () => {
      gone = true
      end?.()
    }
  }, [chart])

  return <div ref={root} className={`${css.plot} ${chart.height < 120 ? css.low : ''}`} role="img" aria-label={label} />
}
