import { useDeferredValue, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/settings'
import { api, read, type Schemas } from '../../api/client'
import { Button } from '../../components/Button'
import { useProject } from '../../components/Filters'
import { MailFrame } from '../../components/MailFrame'
import { Row, Stack } from '../../components/Page'
import { FailureNote } from '../../components/States'
import { toast } from '../../components/Toast'
import css from './MailPreview.module.css'

type Draft = Schemas['MailDraft']

/** A mail with example values as it is typed, and a way to mail it to oneself. */
export function MailPreview({ draft }: { draft: Draft }) {
  const project = useProject()
  const [plain, setPlain] = useState(false)
  const [sending, setSending] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)
  const shown = useDeferredValue(draft)
  const params = { path: { projectUUID: project } }
  const query = useQuery({
    queryKey: ['mail preview', project, shown],
    queryFn: () => read(api.POST('/projects/{projectUUID}/mail-preview', { params, body: shown })),
    placeholderData: (former) => former,
    retry: false,
  })
  const mail = query.data?.content

  async function send() {
    setSending(true)
    setFailure(null)
    try {
      const { content } = await read(api.POST('/projects/{projectUUID}/test-mails', { params, body: draft }))
      toast(texts.sentToWithoutAMail(content.recipient))
    } catch (error) {
      setFailure(error)
    } finally {
      setSending(false)
    }
  }

  return (
    <Stack>
      <h3>{texts.previewWithExampleValues}</h3>
      <Row>
        <Button look={plain ? 'quiet' : 'plain'} aria-pressed={!plain} onClick={() => setPlain(false)}>{texts.mail}</Button>
        <Button look={plain ? 'plain' : 'quiet'} aria-pressed={plain} onClick={() => setPlain(true)}>{texts.plainText}</Button>
        <Button needs="sendTestMail" busy={sending} onClick={() => void send()}>{texts.sendTestMailToMe}</Button>
      </Row>
      {query.error !== null && <FailureNote error={query.error} />}
      {failure !== null && <FailureNote error={failure} />}
      {mail !== undefined && (
        <>
          <p className={css.subject}>{mail.subject}</p>
          {plain ? <pre className={css.text} tabIndex={0} aria-label={texts.plainTextOfTheMail}>{mail.text}</pre>
            : <MailFrame html={mail.html} />}
        </>
      )}
    </Stack>
  )
}
