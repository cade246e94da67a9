import { useEffect, useRef } from 'react'
import {
  autocompletion, closeBrackets, closeBracketsKeymap, completeFromList, completionKeymap, type Completion,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { PostgreSQL, sql, type SQLNamespace } from '@codemirror/lang-sql'
import { bracketMatching, indentOnInput } from '@codemirror/language'
import { Compartment, EditorState, Prec } from '@codemirror/state'
import {
  drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder as placeholderOf,
} from '@codemirror/view'
import { colors, look, mark, setMark, type Mark } from './editorLook'
import css from './CodeEditor.module.css'

export interface Names {
  tables: SQLNamespace
  columns: Completion[] // that complete without their table
}

interface Props {
  label: string
  initial: string // later changes are the editor's own; a new text needs a new key
  onChange?: (value: string) => void // absent: read-only
  onRun?: (selection: string, offset: number) => void // Ctrl-Enter; the whole text if nothing is selected
  onSelect?: (selection: string, offset: number) => void
  names?: Names // for completion
  marked?: Mark | null // where the database found an error
  placeholder?: string
  size?: 'small' | 'fill'
}

/** An editor of SQL. Its own styles live in a shadow root, where the page's policy allows them. */
export function CodeEditor(props: Props) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const latest = useRef(props)
  latest.current = props
  const { names, marked } = props

  useEffect(() => {
    if (host.current === null) return

    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' })
    const editor = new EditorView({ state: stateOf(latest), parent: root, root })
    view.current = editor
    return () => editor.destroy()
  }, [])

  useEffect(() => {
    view.current?.dispatch({ effects: language.reconfigure(languageOf(names)) })
  }, [names])

  useEffect(() => {
    view.current?.dispatch({ effects: setMark.of(marked ?? null), scrollIntoView: true })
  }, [marked])

  return <div ref={host} className={`${css.editor} ${css[props.size ?? 'small']}`} />
}

const language = new Compartment()
const languageOf = (names: Names | undefined) => [
  sql({ dialect: PostgreSQL, defaultSchema: 'public', ...(names !== undefined && { schema: names.tables }) }),
  PostgreSQL.language.data.of({ autocomplete: completeFromList(names?.columns ?? []) }),
]

function stateOf(latest: { current: Props }): EditorState {
  const { label, initial, onChange, placeholder, names } = latest.current
  const run = (view: EditorView) => {
    latest.current.onRun?.(...selected(view.state))
    return latest.current.onRun !== undefined
  }

  return EditorState.create({
    doc: initial,
    extensions: [
      Prec.highest(keymap.of([{ key: 'Mod-Enter', run }])),
      lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(),
      autocompletion({ activateOnTyping: true }), highlightActiveLine(), EditorView.lineWrapping,
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
      language.of(languageOf(names)), colors, mark, look,
      EditorState.readOnly.of(onChange === undefined),
      EditorView.contentAttributes.of({ 'aria-label': label }),
      placeholderOf(placeholder ?? ''),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) latest.current.onChange?.(update.state.doc.toString())
        if (update.docChanged || update.selectionSet) latest.current.onSelect?.(...selected(update.state))
      }),
    ],
  })
}

function selected(state: EditorState): [text: string, offset: number] {
  const { from, to } = state.selection.main
  return from === to ? [state.doc.toString(), 0] : [state.sliceDoc(from, to), from]
}
