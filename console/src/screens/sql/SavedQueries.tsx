import { useState } from 'react'
import { Button } from '../../components/Button'
import { Dialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Empty } from '../../components/States'
import { toast } from '../../components/Toast'
import { useSaved } from './tabs'
import css from './SQL.module.css'

/** Queries that a person keeps under a name, in this browser. */
export function SavedQueries({ project, text, onOpen, onClose }: {
  project: string
  text: string // of the open tab
  onOpen: (text: string) => void
  onClose: () => void
}) {
  const { saved, save, remove } = useSaved(project)
  const [name, setName] = useState('')
  const replaces = saved.some((s) => s.name === name)

  return (
    <Dialog title="Saved queries" open side onClose={onClose}>
      {text.trim() !== '' && (
        <form className={css.saver} onSubmit={(e) => {
          e.preventDefault()
          save(name, text)
          setName('')
        }}>
          <TextField label="Save the open query as" required value={name} onChange={(e) => setName(e.target.value)} />
          <Button type="submit" look="primary">{replaces ? 'Replace query' : 'Save query'}</Button>
        </form>
      )}
      {saved.length === 0 ? (
        <Empty title="No saved query yet">Saved queries stay in this browser.</Empty>
      ) : (
        <ul className={css.list}>
          {saved.map((s) => (
            <li key={s.name}>
              <div className={css.entry}>
                <span>{s.name}</span>
                <Button look="quiet" onClick={() => onOpen(s.text)}>Open</Button>
                <Button look="danger" aria-label={`Delete ${s.name}`} onClick={() => {
                  remove(s.name)
                  toast(`Deleted ${s.name}`, 'success', { text: 'Undo', run: () => save(s.name, s.text) })
                }}>
                  Delete
                </Button>
              </div>
              <pre tabIndex={0} aria-label={`Text of ${s.name}`}>{s.text}</pre>
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  )
}
