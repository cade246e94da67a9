/** Charts on a canvas, in the colors of the theme. It is loaded with the first chart. */

import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

export type Color = 'accent' | 'success' | 'warning' | 'danger'

export interface Series {
  label: string
  values: (number | null)[] // null is a gap
  color: Color
  bars?: boolean // later series are drawn over earlier ones
}

export interface Chart {
  axis: string // what the xs are
  xs: number[] // ascending; Unix seconds for times
  times: boolean
  nameOf?: (x: number) => string // for an axis of names, whose xs count from 0
  series: Series[]
  format?: (value: number) => string
  height: number // pixels, with the legend below
}

const pointsShown = 60 // a line of more values is dense enough without

/** Draws a chart into an element, follows its width and the theme, and returns the function that ends it. */
export function draw(element: HTMLElement, chart: Chart): () => void {
  let plot = new uPlot(optionsOf(element, chart), dataOf(chart), element)

  const width = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: chart.height }))
  width.observe(element)

  const theme = new MutationObserver(() => {
    plot.destroy()
    plot = new uPlot(optionsOf(element, chart), dataOf(chart), element)
  })
  theme.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })

  return () => {
    width.disconnect()
    theme.disconnect()
    plot.destroy()
  }
}

const timeText = (seconds: number) =>
  new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: 'short', timeStyle: 'short' })

function dataOf({ xs, series }: Chart): uPlot.AlignedData {
  return [xs, ...series.map((s) => s.values)]
}

function optionsOf(element: HTMLElement, { axis: axisName, xs, times, nameOf, series, format, height }: Chart): uPlot.Options {
  const style = getComputedStyle(document.documentElement)
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim()
  const half = xs.length > 1 ? ((xs.at(-1) ?? 0) - (xs[0] ?? 0)) / (xs.length - 1) / 2 : 0.5 // of a bar
  const hasBars = series.some((s) => s.bars)

  const axis = {
    stroke: token('ink-2'),
    font: `${token('text-s')} ${token('font')}`,
    grid: { stroke: token('line'), width: 1 },
    ticks: { stroke: token('line'), width: 1 },
  }
  const text = format ?? ((value: number) => value.toLocaleString(undefined, { maximumSignificantDigits: 6 }))
  const name = nameOf && ((x: number) => (Number.isInteger(x) ? nameOf(x) : ''))
  const at = name ?? (times ? timeText : (x: number) => x.toLocaleString())

  return {
    width: element.clientWidth,
    height,
    scales: {
      x: { time: times, ...(hasBars && { range: (_, min, max) => [min - half, max + half] }) },
      y: { range: (_, min, max) => (min === null ? [0, 1] : uPlot.rangeNum(Math.min(0, min), Math.max(0, max), 0.05, true)) },
    },
    axes: [
      { ...axis, ...(name && { values: (_, splits) => splits.map(name) }) },
      { ...axis, size: 72, values: (_, splits) => splits.map(text) },
    ],
    series: [
      { label: axisName, value: (_, x) => (x === null ? '' : at(x)) },
      ...series.map((s): uPlot.Series => ({
        label: s.label,
        stroke: token(s.color),
        value: (_, value) => (value === null ? '' : text(value)),
        ...(s.bars
          ? { fill: token(s.color), paths: uPlot.paths.bars!({ size: [0.8, 64] }), points: { show: false } }
          : { width: 2, points: { show: xs.length <= pointsShown } }),
      })),
    ],
  }
}
