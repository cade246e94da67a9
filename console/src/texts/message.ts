/** What the messages of a language are made of. */

import { createElement, Fragment, type ReactNode } from 'react'

export type Value = string | number
export type Node = ReactNode

/** A message with elements in it: say`Rows of ${<b>books</b>}`. */
export function say(parts: TemplateStringsArray, ...nodes: Node[]): Node {
  return createElement(Fragment, null, ...parts.flatMap((part, i) => (i < nodes.length ? [part, nodes[i]] : [part])))
}
