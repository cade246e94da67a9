import { useState, type KeyboardEvent } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../api/client'
import { Dialog } from '../components/Dialog'
import { inputClass } from '../components/Field'
import { refusalOf } from '../components/rights'
import { entries } from './navigation'
import css from './Palette.module.css'

interface Target {
  text: string
  kind: string
  to: string
}

const shown = 12

/** Finds screens, tables and projects by name. */
export function Palette({ open, onClose, project, held }: {
  open: boolean
  onClose: () => void
  project: string | undefined
  held: number | undefined // role
}) {
  const [text, setText] = useState('')
  const [index, setIndex] = useState(0)
  const navigate = useNavigate()
  const targets = useTargets(open, project, held, text)

  function choose(target: Target | undefined) {
    if (!target) return
    onClose()
    setText('')
    void navigate({ to: target.to })
  }

  function onKeyDown(e: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key]
    if (step !== undefined) {
      e.preventDefault()
      setIndex((index + step + targets.length) % Math.max(targets.length, 1))
    } else if (e.key === 'Enter') {
      choose(targets[index])
    }
  }

  return (
    <Dialog title="Go to" open={open} onClose={onClose}>
      <input className={inputClass} placeholder="A screen, a table, a project" aria-label="Search" autoFocus value={text}
        role="combobox" aria-expanded="true" aria-controls="palette" aria-activedescendant={`palette-${index}`}
        onKeyDown={onKeyDown} onChange={(e) => {
          setText(e.target.value)
          setIndex(0)
        }} />
      <div id="palette" role="listbox" aria-label="Results" className={css.list}>
        {targets.map((t, i) => (
          <div key={t.to} id={`palette-${i}`} role="option" aria-selected={i === index} className={css.item}
            onMouseEnter={() => setIndex(i)} onClick={() => choose(t)}>
            <span>{t.text}</span>
            <span className={css.kind}>{t.kind}</span>
          </div>
        ))}
      </div>
    </Dialog>
  )
}

function useTargets(open: boolean, project: string | undefined, held: number | undefined, text: string): Target[] {
  const tables = useQuery({
    queryKey: ['palette tables', project],
    enabled: open && project !== undefined,
    queryFn: () => read(api.GET('/tables', {
      params: { header: inProject(project ?? ''), query: { limit: 100, sort: 'name' } },
    })),
  })
  const projects = useQuery({
    queryKey: ['palette projects', text],
    enabled: open,
    queryFn: () => read(api.GET('/projects', { params: { query: { limit: 20, ...(text !== '' && { search: text }) } } })),
  })

  const all: Target[] = []
  if (project !== undefined) {
    for (const e of entries) {
      if (refusalOf(e.needs, held) === undefined) all.push({ text: e.text, kind: 'screen', to: `/projects/${project}/${e.path}` })
    }
    for (const t of tables.data?.content ?? []) {
      const name = t.schema === 'public' ? t.name : `${t.schema}.${t.name}`
      all.push({ text: name, kind: 'table', to: `/projects/${project}/tables/${encodeURIComponent(`${t.schema}.${t.name}`)}` })
    }
  }
  for (const p of projects.data?.content ?? []) all.push({ text: p.name, kind: 'project', to: `/projects/${p.uuid}` })
  all.push({ text: 'All projects', kind: 'screen', to: '/' }, { text: 'Account', kind: 'screen', to: '/account' })

  const wanted = text.toLowerCase()
  return all.filter((t) => t.text.toLowerCase().includes(wanted)).slice(0, shown)
}
