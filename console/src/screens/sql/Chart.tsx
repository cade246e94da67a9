import { useMemo, useState } from 'react'
import { texts } from '#texts/sql'
import { SelectField } from '../../components/Field'
import { Plot } from '../../components/Plot'
import type { Result } from '../../components/runSQL'
import { chartOf, numeric } from './chartOf'
import css from './SQL.module.css'

/** One column of a result over another one. */
export function Chart({ result }: { result: Result }) {
  const { columns } = result
  const numbers = columns.flatMap((c, i) => (numeric.test(c.type) ? [i] : []))
  const [x, setX] = useState(columns.length > 1 && numbers[0] === 0 && numbers.length === 1 ? 1 : 0)
  const [y, setY] = useState(numbers.find((i) => i !== 0) ?? numbers[0] ?? -1)
  const [kind, setKind] = useState('bars')
  if (y === -1) return <p className={css.hint}>{texts.aChartNeedsAColumn}</p>

  return (
    <div className={css.chart}>
      <div className={css.chartBar}>
        <SelectField label={texts.across} value={x} onChange={(e) => setX(Number(e.target.value))}>
          {columns.map((c, i) => <option key={i} value={i}>{c.name}</option>)}
        </SelectField>
        <SelectField label={texts.up} value={y} onChange={(e) => setY(Number(e.target.value))}>
          {numbers.map((i) => <option key={i} value={i}>{columns[i]?.name}</option>)}
        </SelectField>
        <SelectField label={texts.kind} value={kind} onChange={(e) => setKind(e.target.value)}>
          <option value="bars">{texts.bars}</option>
          <option value="line">{texts.line}</option>
        </SelectField>
      </div>
      <Drawing result={result} x={x} y={y} isLine={kind === 'line'} />
    </div>
  )
}

function Drawing({ result, x, y, isLine }: { result: Result; x: number; y: number; isLine: boolean }) {
  const chart = useMemo(() => chartOf(result, x, y, isLine), [result, x, y, isLine])
  if (chart.xs.length === 0) return <p className={css.hint}>{texts.theColumnHasNoNumbers}</p>

  const label = texts.valuesOverAxis(result.columns[y]?.name ?? '', result.columns[x]?.name ?? '', chart.xs.length)
  return <Plot label={label} chart={chart} />
}
