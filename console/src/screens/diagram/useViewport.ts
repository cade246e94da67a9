import { useEffect, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react'
import { fitted, moved, zoomed, type Viewport } from './viewport'

const step = 60 // px that an arrow key moves
const factor = 1.25 // of one zoom step
const wheelRate = 0.0015

/** Pan and zoom of a picture: by pointer, wheel and keys. The picture fits its frame until a person moves it. */
export function useViewport(width: number, height: number) {
  const frame = useRef<HTMLDivElement>(null)
  const [view, setView] = useState<Viewport>({ x: 0, y: 0, scale: 1 })
  const drag = useRef<{ x: number; y: number } | null>(null)
  const isMoved = useRef(false) // by the person: a new size of the window changes nothing then

  const room = () => ({ width: frame.current?.clientWidth ?? 0, height: frame.current?.clientHeight ?? 0 })
  const change = (next: (v: Viewport) => Viewport) => {
    isMoved.current = true
    setView(next)
  }
  const zoom = (by: number) => change((v) => zoomed(v, by, { x: room().width / 2, y: room().height / 2 }))
  const fit = () => {
    isMoved.current = false
    setView(fitted({ width, height }, room()))
  }

  useEffect(() => {
    const element = frame.current
    if (element === null) return

    isMoved.current = false
    const sizes = new ResizeObserver(() => { // it calls at once, too
      if (!isMoved.current) setView(fitted({ width, height }, { width: element.clientWidth, height: element.clientHeight }))
    })
    sizes.observe(element)
    const onWheel = (e: WheelEvent) => {
      e.preventDefault()
      const { left, top } = element.getBoundingClientRect()
      isMoved.current = true
      setView((v) => zoomed(v, Math.exp(-e.deltaY * wheelRate), { x: e.clientX - left, y: e.clientY - top }))
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => {
      sizes.disconnect()
      element.removeEventListener('wheel', onWheel)
    }
  }, [width, height])

  return {
    frame, view, fit,
    zoomIn: () => zoom(factor),
    zoomOut: () => zoom(1 / factor),
    handlers: {
      onPointerDown: (e: PointerEvent) => {
        if (e.button === 0) drag.current = { x: e.clientX, y: e.clientY }
      },
      onPointerMove: (e: PointerEvent) => {
        const from = drag.current
        if (from === null) return
        if (e.buttons === 0) {
          drag.current = null
          return
        }
        drag.current = { x: e.clientX, y: e.clientY }
        change((v) => moved(v, e.clientX - from.x, e.clientY - from.y))
      },
      onPointerUp: () => {
        drag.current = null
      },
      onKeyDown: (e: KeyboardEvent) => {
        const move = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[e.key]
        if (move !== undefined) change((v) => moved(v, move[0]!, move[1]!))
        else if (e.key === '+' || e.key === '=') zoom(factor)
        else if (e.key === '-') zoom(1 / factor)
        else if (e.key === '0') fit()
        else return
        e.preventDefault()
      },
    },
  }
}
