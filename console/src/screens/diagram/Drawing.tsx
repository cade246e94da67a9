import { useState, type MouseEvent, type RefObject } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { texts } from '#texts/diagram'
import { tablePath } from '../../components/tableList'
import { cut, size, type Box, type Column, type Layout } from './layout'
import css from './Diagram.module.css'

/** The tables and the lines between them. A table in focus or under the pointer lights up its lines. */
export function Drawing({ project, schema, layout, transform, svg }: {
  project: string
  schema: string
  layout: Layout
  transform: string
  svg: RefObject<SVGSVGElement | null>
}) {
  const [lit, setLit] = useState('')
  const isLit = (e: { from: string; to: string }) => lit !== '' && (e.from === lit || e.to === lit)
  const edges = [...layout.edges].sort((a, b) => Number(isLit(a)) - Number(isLit(b))) // lit lines last: on top

  return (
    <svg ref={svg} className={css.drawing} role="group" aria-label={texts.tablesOfSchema(schema)}>
      <g transform={transform}>
        {edges.map((e) => (
          <path key={`${e.from} ${e.column} ${e.to}`} d={e.path} className={isLit(e) ? css.lit : css.edge} />
        ))}
        {layout.boxes.map((box) => (
          <Node key={box.table.name} project={project} schema={schema} box={box} isLit={box.table.name === lit} onLit={setLit} />
        ))}
      </g>
    </svg>
  )
}

function Node({ project, schema, box, isLit, onLit }: {
  project: string
  schema: string
  box: Box
  isLit: boolean
  onLit: (name: string) => void
}) {
  const navigate = useNavigate()
  const { name } = box.table
  const path = tablePath(project, name)
  const title = name.startsWith(`${schema}.`) ? name.slice(schema.length + 1) : name
  const chars = Math.floor((box.width - 2 * size.pad) / size.char)

  function open(e: MouseEvent) {
    if (e.ctrlKey || e.metaKey || e.shiftKey) return
    e.preventDefault()
    void navigate({ to: path })
  }

  return (
    <g transform={`translate(${box.x} ${box.y})`} onMouseEnter={() => onLit(name)} onMouseLeave={() => onLit('')}>
      <rect width={box.width} height={box.height} rx={6} className={isLit ? css.boxLit : css.box} />
      <path d={`M0 ${size.head} H${box.width}`} className={css.rule} />
      <a href={`/console${path}`} aria-label={title} onClick={open} onFocus={() => onLit(name)} onBlur={() => onLit('')}>
        <text x={size.pad} y={size.head / 2 + 4} className={css.title}>{cut(title, chars)}</text>
      </a>
      {box.shown.map((c, i) => <Line key={c.name} column={c} y={size.head + (i + 0.5) * size.row + 4} box={box} chars={chars} />)}
      {box.hidden > 0 && (
        <text x={size.pad} y={size.head + (box.shown.length + 0.5) * size.row + 4} className={css.quiet}>
          {texts.hiddenMore(box.hidden)}
        </text>
      )}
    </g>
  )
}

function Line({ column, y, box, chars }: { column: Column; y: number; box: Box; chars: number }) {
  const sign = column.primary ? '• ' : column.reference !== null ? '→ ' : '  '
  const name = cut(column.name, Math.max(8, chars - 3 - Math.min(column.type.length, 11)))

  return (
    <>
      <text x={size.pad} y={y} className={column.primary ? css.key : css.column} xmlSpace="preserve">{sign + name}</text>
      <text x={box.width - size.pad} y={y} className={css.type}>{cut(column.type, Math.max(4, chars - name.length - 3))}</text>
    </>
  )
}
