import { useState, type FormEvent } from 'react'
import { texts } from '#texts/endusers'
import { api, read, type Schemas } from '../../api/client'
import { Button } from '../../components/Button'
import { TextArea } from '../../components/Field'
import { Card, Row, Stack } from '../../components/Page'
import { FailureNote } from '../../components/States'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { membersOf, parseMembers, patchOf } from './account'

/** The JSON that the user and the administrators keep about an account. */
export function Metadata({ project, account }: { project: string; account: Schemas['Account'] }) {
  return (
    <Card title={texts.metadata} lead={texts.bothAreInTheClaims}>
      <Editor key={texts.userStringify(JSON.stringify(account.userMetadata))} project={project} account={account}
        member="user_metadata" label={texts.userMetadata} hint={texts.theUserCanChangeIt}
        value={account.userMetadata} />
      <Editor key={texts.appStringify(JSON.stringify(account.appMetadata))} project={project} account={account}
        member="app_metadata" label={texts.appMetadata} hint={texts.onlyAdministratorsCanChangeIt} value={account.appMetadata} />
    </Card>
  )
}

function Editor({ project, account, member, label, hint, value }: {
  project: string
  account: Schemas['Account']
  member: 'user_metadata' | 'app_metadata'
  label: string
  hint: string
  value: unknown
}) {
  const before = membersOf(value)
  const [text, setText] = useState(() => JSON.stringify(before, null, 2))
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)
  const after = parseMembers(text)
  const patch = typeof after === 'string' ? {} : patchOf(before, after)
  const changed = Object.keys(patch).length > 0

  async function save(e: FormEvent) {
    e.preventDefault()
    setBusy(true)
    setFailure(null)
    try {
      await read(api.PUT('/projects/{projectUUID}/end-users/{endUserUUID}', {
        params: { path: { projectUUID: project, endUserUUID: account.uuid } },
        body: { [member]: patch },
      }))
      await queries.invalidateQueries({ queryKey: ['end-users', project] })
      toast(texts.labelIsSaved(label))
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <form onSubmit={(e) => void save(e)}>
      <Stack>
        <TextArea label={label} hint={hint} value={text} spellCheck={false} rows={Math.min(14, text.split('\n').length + 1)}
          error={typeof after === 'string' ? after : undefined} onChange={(e) => setText(e.target.value)} />
        {failure !== null && <FailureNote error={failure} />}
        {changed && (
          <Row>
            <Button type="submit" look="primary" busy={busy}>{texts.saveLabel(label.toLowerCase())}</Button>
            <Button onClick={() => setText(JSON.stringify(before, null, 2))}>{texts.discardChanges}</Button>
          </Row>
        )}
      </Stack>
    </form>
  )
}
