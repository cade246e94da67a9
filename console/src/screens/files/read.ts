/** Reads a file's bytes, to save or to show them. */

import { api, inProject, read } from '../../api/client'
import { download, saveAs } from '../../components/transfer'
import { toast } from '../../components/Toast'
import { splitName } from './folders'

const maxInMemory = 200 * 1024 * 1024 // larger files go to the disk as the browser receives them

export interface FileRef {
  uuid: string
  fullName: string
}

export const downloadPath = (container: string, file: string) => `/containers/${container}/files/${file}/download`

/** Saves a file on the person's computer. */
export async function saveFile(project: string, container: string, file: FileRef & { size: number }): Promise<void> {
  const [, name] = splitName(file.fullName)
  try {
    if (file.size > maxInMemory) await saveByURL(project, container, file, name)
    else saveAs(await download(downloadPath(container, file.uuid), { headers: inProject(project) }), name)
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), 'danger')
  }
}

async function saveByURL(project: string, container: string, file: FileRef, name: string): Promise<void> {
  const { content } = await read(api.POST('/containers/{containerUUID}/files/{fileUUID}/signed-url', {
    params: { header: inProject(project), path: { containerUUID: container, fileUUID: file.uuid } },
    body: { expires_in: 60 },
  }))
  const link = document.createElement('a')
  link.href = new URL(content.url, location.origin).href
  link.download = name
  link.rel = 'noopener'
  link.click()
}
