import { useState } from 'react'
import { texts } from '#texts/queues'
import { FormDialog } from '../../components/Dialog'
import { TextArea, TextField } from '../../components/Field'
import { toast } from '../../components/Toast'
import { call } from './queries'

/** Sends a message by hand. */
export function SendMessage({ project, queue, onClose }: { project: string; queue: string; onClose: () => void }) {
  const [text, setText] = useState('{}')
  const [delay, setDelay] = useState('0')
  const failure = problemOf(text)

  return (
    <FormDialog title={texts.sendAMessage} open action={texts.sendMessage} onClose={onClose} disabled={failure !== undefined} onSubmit={async () => {
      const id = await call(project, 'send', [queue, 'text'], [text, 'jsonb'], [delay === '' ? '0' : delay, 'integer'])
      toast(texts.messageIdIsSent(id ?? ''))
    }}>
      <TextArea label={texts.messageJSON} autoFocus rows={6} spellCheck={false} value={text} error={failure} onChange={(e) => setText(e.target.value)} />
      <TextField label={texts.delayInSeconds} type="number" min={0} step={1} value={delay} hint={texts.untilThenNobodyReadsIt}
        onChange={(e) => setDelay(e.target.value)} />
    </FormDialog>
  )
}

function problemOf(text: string): string | undefined {
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    return texts.notValidJSONError(error instanceof Error ? error.message : String(error))
  }
}
