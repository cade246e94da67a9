const painted = ['fill', 'stroke', 'stroke-width', 'font-family', 'font-size', 'font-weight', 'text-anchor']

/** Returns a drawn diagram as a file of its own: whole, with the colors in sight and without links. */
export function svgOf(drawn: SVGSVGElement, width: number, height: number): string {
  const copy = drawn.cloneNode(true) as SVGSVGElement
  const originals = [...drawn.querySelectorAll('*')]
  for (const [i, element] of [...copy.querySelectorAll('*')].entries()) {
    const style = getComputedStyle(originals[i]!)
    for (const name of painted) element.setAttribute(name, style.getPropertyValue(name))
    for (const name of ['class', 'href', 'tabindex', 'aria-label']) element.removeAttribute(name)
  }

  const margin = 24
  copy.querySelector('g')?.removeAttribute('transform')
  for (const name of ['class', 'role', 'aria-label']) copy.removeAttribute(name)
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  copy.setAttribute('viewBox', `${-margin} ${-margin} ${width + 2 * margin} ${height + 2 * margin}`)
  copy.setAttribute('width', String(width + 2 * margin))
  copy.setAttribute('height', String(height + 2 * margin))

  const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect')
  const color = getComputedStyle(document.body).backgroundColor
  for (const [name, value] of [['x', -margin], ['y', -margin], ['width', '100%'], ['height', '100%'], ['fill', color]]) {
    ground.setAttribute(String(name), String(value))
  }
  copy.prepend(ground)

  return new XMLSerializer().serializeToString(copy)
}
