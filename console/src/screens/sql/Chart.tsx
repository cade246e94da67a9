import { useState } from 'react'
import { textOf } from '../../components/exact'
import { SelectField } from '../../components/Field'
import type { Result } from '../../components/runSQL'
import css from './SQL.module.css'

const numeric = /^(smallint|integer|bigint|numeric|real|double precision)/
const mostPoints = 500
const [width, height, left, bottom, top] = [900, 210, 64, 26, 10]

/** One column of a result over another one. */
export function Chart({ result }: { result: Result }) {
  const { columns } = result
  const numbers = columns.flatMap((c, i) => (numeric.test(c.type) ? [i] : []))
  const [x, setX] = useState(columns.length > 1 && numbers[0] === 0 && numbers.length === 1 ? 1 : 0)
  const [y, setY] = useState(numbers.find((i) => i !== 0) ?? numbers[0] ?? -1)
  const [kind, setKind] = useState('bars')
  if (y === -1) return <p className={css.hint}>A chart needs a column of numbers.</p>

  return (
    <div className={css.chart}>
      <div className={css.chartBar}>
        <SelectField label="Across" value={x} onChange={(e) => setX(Number(e.target.value))}>
          {columns.map((c, i) => <option key={i} value={i}>{c.name}</option>)}
        </SelectField>
        <SelectField label="Up" value={y} onChange={(e) => setY(Number(e.target.value))}>
          {numbers.map((i) => <option key={i} value={i}>{columns[i]?.name}</option>)}
        </SelectField>
        <SelectField label="Kind" value={kind} onChange={(e) => setKind(e.target.value)}>
          <option value="bars">Bars</option>
          <option value="line">Line</option>
        </SelectField>
      </div>
      <Drawing result={result} x={x} y={y} isLine={kind === 'line'} />
    </div>
  )
}

function Drawing({ result, x, y, isLine }: { result: Result; x: number; y: number; isLine: boolean }) {
  const points = result.rows.slice(0, mostPoints).map((row) => ({
    text: textOf(row[x] ?? null) ?? 'null',
    value: Number(textOf(row[y] ?? null) ?? NaN),
  })).filter((p) => Number.isFinite(p.value))
  if (points.length === 0) return <p className={css.hint}>The column has no numbers to draw.</p>

  const max = Math.max(0, ...points.map((p) => p.value))
  const min = Math.min(0, ...points.map((p) => p.value))
  const step = (width - left) / points.length
  const up = (value: number) => top + ((max - value) / (max - min || 1)) * (height - top - bottom)
  const middle = (i: number) => left + (i + 0.5) * step
  const every = Math.ceil(points.length / 8)

  return (
    <svg viewBox={`0 0 ${width} ${height}`} role="img"
      aria-label={`${result.columns[y]?.name} over ${result.columns[x]?.name}, ${points.length} values`}>
      {[max, (max + min) / 2, min].map((value) => (
        <g key={value}>
          <line className={css.axis} x1={left} x2={width} y1={up(value)} y2={up(value)} />
          <text x={left - 6} y={up(value) + 4} textAnchor="end">{Number(value.toPrecision(4))}</text>
        </g>
      ))}
      {isLine
        ? <polyline className={css.line} points={points.map((p, i) => `${middle(i)},${up(p.value)}`).join(' ')} />
        : points.map((p, i) => (
          <rect key={i} className={css.bar} x={left + i * step + step * 0.1} width={step * 0.8}
            y={Math.min(up(p.value), up(0))} height={Math.abs(up(p.value) - up(0))}>
            <title>{`${p.text}: ${p.value}`}</title>
          </rect>
        ))}
      {points.map((p, i) => i % every === 0 && (
        <text key={i} x={middle(i)} y={height - 6} textAnchor="middle">{p.text.slice(0, 14)}</text>
      ))}
    </svg>
  )
}
