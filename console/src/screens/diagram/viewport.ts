/** What part of a picture is in sight. x and y are where its origin stands in the frame. */
export interface Viewport {
  x: number
  y: number
  scale: number
}

interface Size {
  width: number
  height: number
}

const [smallest, largest] = [0.1, 3]
const margin = 24 // px

/** Returns the viewport that shows all of a picture, in the middle and not enlarged. */
export function fitted(picture: Size, frame: Size): Viewport {
  const scale = bounded(Math.min(1, (frame.width - 2 * margin) / Math.max(1, picture.width),
    (frame.height - 2 * margin) / Math.max(1, picture.height)))

  return { x: (frame.width - picture.width * scale) / 2, y: (frame.height - picture.height * scale) / 2, scale }
}

/** Returns the viewport zoomed by a factor; the point of the frame keeps what it shows. */
export function zoomed(v: Viewport, by: number, point: { x: number; y: number }): Viewport {
  const scale = bounded(v.scale * by)
  const ratio = scale / v.scale

  return { x: point.x - (point.x - v.x) * ratio, y: point.y - (point.y - v.y) * ratio, scale }
}

export const moved = (v: Viewport, x: number, y: number): Viewport => ({ ...v, x: v.x + x, y: v.y + y })

const bounded = (scale: number) => Math.min(largest, Math.max(smallest, scale))
