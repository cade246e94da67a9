import { useState, type KeyboardEvent } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/shell'
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
    <Dialog title={texts.goTo} open={open} onClose={onClose}>
      <input className={inputClass} placeholder={texts.aScreenATableA} aria-label={texts.search} autoFocus value={text}
        role="combobox" aria-expanded="true" aria-controls="palette" aria-activedescendant={`palette-${index}`}
        onKeyDown={onKeyDown} onChange={(e) => {
          setText(e.target.value)
          setIndex(0)
        }} />
      <div id="palette" role="listbox" aria-label={texts.results} className={css.list}>
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
    queryKey: ['palette tables', project, text],
    enabled: open && project !== undefined,
    placeholderData: (former) => former,
    queryFn: () => read(api.GET('/tables', {
      params: { header: inProject(project ?? ''), query: { limit: 20, sort: 'name', ...(text !== '' && { search: text }) } },
    })),
  })
  const projects = useQuery({
    queryKey: ['palette projects', text],
    enabled: open,
    placeholderData: (former) => former,
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
  all.push({ text: texts.allProjects, kind: 'screen', to: '/' }, { text: texts.account, kind: 'screen', to: '/account' })

  const wanted = text.toLowerCase()
  return all.filter((t) => t.text.toLowerCase().includes(wanted)).slice(0, shown)
}
