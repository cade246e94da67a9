/** How the editor shows SQL: colors by the design tokens, and a mark where an error is. */

import { syntaxTree } from '@codemirror/language'
import { RangeSetBuilder, StateEffect, StateField } from '@codemirror/state'
import { Decoration, EditorView, ViewPlugin, type DecorationSet, type ViewUpdate } from '@codemirror/view'

export interface Mark {
  from: number
  to: number
}

/** Moves the mark; null removes it. */
export const setMark = StateEffect.define<Mark | null>()

export const mark = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    let next = marks.map(transaction.changes)
    for (const effect of transaction.effects) {
      if (!effect.is(setMark)) continue

      const length = transaction.state.doc.length
      const from = Math.min(effect.value?.from ?? 0, Math.max(0, length - 1))
      const to = Math.min(effect.value?.to ?? 0, length)
      next = to > from ? Decoration.set(Decoration.mark({ class: 'bad' }).range(from, to)) : Decoration.none
    }

    return next
  },
  provide: (field) => EditorView.decorations.from(field),
})

const classes: Record<string, string> = {
  Keyword: 'keyword', Type: 'type', Builtin: 'type', String: 'string', Bool: 'keyword', Null: 'keyword',
  Number: 'number', LineComment: 'comment', BlockComment: 'comment', QuotedIdentifier: 'name', SpecialVar: 'number',
}

function colored(view: EditorView): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>()
  for (const { from, to } of view.visibleRanges) {
    syntaxTree(view.state).iterate({ from, to, enter: (node) => {
      const name = classes[node.name]
      if (name !== undefined && node.to > node.from) builder.add(node.from, node.to, Decoration.mark({ class: name }))
    } })
  }

  return builder.finish()
}

export const colors = ViewPlugin.fromClass(class {
  decorations: DecorationSet

  constructor(view: EditorView) {
    this.decorations = colored(view)
  }

  update(update: ViewUpdate) {
    const parsed = syntaxTree(update.startState) !== syntaxTree(update.state)
    if (update.docChanged || update.viewportChanged || parsed) this.decorations = colored(update.view)
  }
}, { decorations: (plugin) => plugin.decorations })

export const look = EditorView.theme({
  '&': { height: '100%', color: 'var(--ink)', fontSize: 'var(--text-m)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { background: 'var(--sunken)', color: 'var(--ink-3)', border: '0' },
  '.cm-activeLine': { background: 'var(--hover)' },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground':
    { background: 'var(--selected)' },
  '&.cm-focused .cm-matchingBracket': { background: 'var(--selected)' },
  '.cm-placeholder': { color: 'var(--ink-3)' },
  '.cm-tooltip': { border: '1px solid var(--line)', background: 'var(--raised)', color: 'var(--ink)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]':
    { background: 'var(--selected)', color: 'var(--ink)' },
  '.cm-completionDetail': { color: 'var(--ink-3)' },
  '.keyword': { color: 'var(--accent)' },
  '.type': { color: 'var(--warning)' },
  '.string': { color: 'var(--success)' },
  '.number': { color: 'var(--danger)' },
  '.comment': { color: 'var(--ink-3)', fontStyle: 'italic' },
  '.bad': { background: 'var(--danger-ground)', textDecoration: 'underline wavy var(--danger)' },
})
