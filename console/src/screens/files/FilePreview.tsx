import { useEffect, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/files'
import { api, inProject, read, type Schemas } from '../../api/client'
import { Copyable, formatBytes, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Details } from '../../components/Details'
import { Dialog } from '../../components/Dialog'
import { Row, Stack } from '../../components/Page'
import { Loaded } from '../../components/States'
import { download } from '../../components/transfer'
import type { FileAct } from './acts'
import { previewKind, splitName, type PreviewKind } from './folders'
import { downloadPath, saveFile } from './read'
import css from './Files.module.css'

const maxShown = 50 * 1024 * 1024 // of pictures, sounds and films
const maxText = 256 * 1024

/** One file: what it is, what it looks like, and what can be done with it. */
export function FilePreview({ project, container, uuid, onAct, onClose }: {
  project: string
  container: string
  uuid: string
  onAct: (act: FileAct) => void
  onClose: () => void
}) {
  const query = useQuery({
    queryKey: ['files', project, container, 'one', uuid],
    queryFn: () => read(api.GET('/containers/{containerUUID}/files/{fileUUID}', {
      params: { header: inProject(project), path: { containerUUID: container, fileUUID: uuid } },
    })),
  })
  const name = query.data === undefined ? texts.file : splitName(query.data.content.fullFileName)[1]

  return (
    <Dialog title={name} open onClose={onClose} side wide>
      <Loaded query={query}>
        {({ content: f, metadata }) => {
          const file = { uuid: f.uuid, fullName: f.fullFileName }
          return (
            <Stack>
              <Row>
                <Button look="primary" onClick={() => void saveFile(project, container, { ...file, size: f.size })}>{texts.download}</Button>
                <Button needs="updateFile" onClick={() => onAct({ kind: 'move', file })}>{texts.renameOrMove}</Button>
                <Button onClick={() => onAct({ kind: 'sign', file })}>{texts.createSignedURL}</Button>
                <Button needs="deleteFile" look="danger" onClick={() => onAct({ kind: 'delete', files: [file] })}>
                  {texts.deleteFile}
                </Button>
              </Row>
              <Content project={project} file={f} />
              <Details entries={[
                [texts.fullName, f.fullFileName],
                [texts.type, f.mimeType],
                [texts.size, texts.countCount2Bytes(formatBytes(f.size), f.size.toLocaleString())],
                ['UUID', <Copyable value={f.uuid} label={texts.uuid} />],
                ['SHA-256', <Copyable value={metadata.sha256} label={texts.shaThe256} />],
                [texts.created, <Time at={f.createdAt} />],
                [texts.changed, <Time at={f.updatedAt} />],
              ]} />
            </Stack>
          )
        }}
      </Loaded>
    </Dialog>
  )
}

function Content({ project, file }: { project: string; file: Schemas['File'] }) {
  const kind = previewKind(file.mimeType, file.fullFileName)
  const shows = kind === 'text' || (kind !== 'none' && file.size <= maxShown)
  const query = useQuery({
    queryKey: ['files', project, file.containerUuid, 'bytes', file.uuid, file.updatedAt],
    queryFn: () => download(downloadPath(file.containerUuid, file.uuid), {
      headers: {
        ...inProject(project),
        ...(kind === 'text' && file.size > maxText && { Range: `bytes=0-${maxText - 1}` }),
      },
    }),
    enabled: shows && file.size > 0,
    gcTime: 60_000,
  })
  if (file.size === 0) return <p>{texts.theFileIsEmpty}</p>
  if (!shows) return <p>{kind === 'none' ? texts.thisTypeHasNoPreview : texts.theFileIsTooLarge}</p>

  return (
    <Loaded query={query} rows={3}>
      {(bytes) => kind === 'text' ? <TextContent bytes={bytes} whole={file.size <= maxText} />
        : <MediaContent bytes={bytes} kind={kind} type={file.mimeType} name={file.fullFileName} />}
    </Loaded>
  )
}

function TextContent({ bytes, whole }: { bytes: Blob; whole: boolean }) {
  const [text, setText] = useState('')
  useEffect(() => {
    let current = true
    void bytes.text().then((t) => current && setText(t))
    return () => {
      current = false
    }
  }, [bytes])

  return (
    <div>
      <pre className={css.text} tabIndex={0} aria-label={texts.textOfTheFile}>{text}</pre>
      {!whole && <p>{texts.theBeginningOfTheFile}</p>}
    </div>
  )
}

function MediaContent({ bytes, kind, type, name }: { bytes: Blob; kind: PreviewKind; type: string; name: string }) {
  const [url, setURL] = useState('')
  const [broken, setBroken] = useState(false)
  useEffect(() => {
    const next = URL.createObjectURL(new Blob([bytes], { type }))
    setURL(next)
    return () => URL.revokeObjectURL(next)
  }, [bytes, type])

  if (broken) return <p>{texts.theBrowserCannotShowThis}</p>
  if (url === '') return null

  const failed = () => setBroken(true)
  switch (kind) {
    case 'picture':
      return <img className={css.media} src={url} alt={name} onError={failed} />
    case 'audio':
      return <audio src={url} controls aria-label={name} onError={failed} />
    case 'video':
      return <video className={css.media} src={url} controls aria-label={name} onError={failed} />
    case 'text':
    case 'none':
      return null
  }
}
