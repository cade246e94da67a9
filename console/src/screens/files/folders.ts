/** Names of files and folders. A folder is a prefix that ends with a slash; "" is the root. */

/** An entry of the storage API's list: a folder has no id. */
export interface ListedObject {
  name: string
  id: string | null
  updated_at: string | null
  metadata: { size: number; mimetype: string } | null
}

export interface FileEntry {
  kind: 'file'
  name: string
  uuid: string
  size: number
  mimeType: string
  updatedAt: string
}

export interface FolderEntry {
  kind: 'folder'
  name: string
}

export type Entry = FileEntry | FolderEntry

/** Returns the entries of a list, folders first. */
export function entriesOf(objects: ListedObject[]): Entry[] {
  const folders: Entry[] = []
  const files: Entry[] = []
  for (const o of objects) {
    if (o.id === null) folders.push({ kind: 'folder', name: o.name })
    else files.push({
      kind: 'file', name: o.name, uuid: o.id, size: o.metadata?.size ?? 0, mimeType: o.metadata?.mimetype ?? '',
      updatedAt: o.updated_at ?? '',
    })
  }

  return [...folders, ...files]
}

/** Returns the folders on the way to a folder: "a/b/" is [["a", "a/"], ["b", "a/b/"]]. */
export function trail(folder: string): [name: string, path: string][] {
  const names = folder.split('/').filter((n) => n !== '')
  return names.map((name, i) => [name, `${names.slice(0, i + 1).join('/')}/`])
}

/** Returns a folder as the URL may have it, with one slash at its end and none before. */
export function normalFolder(text: string): string {
  const names = text.split('/').filter((n) => n !== '')
  return names.length === 0 ? '' : `${names.join('/')}/`
}

/** Returns the folder of a full file name, and the name in it. */
export function splitName(fullName: string): [folder: string, name: string] {
  const end = fullName.lastIndexOf('/') + 1
  return [fullName.slice(0, end), fullName.slice(end)]
}

export type PreviewKind = 'picture' | 'audio' | 'video' | 'text' | 'none'

const pictures = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp']
const texts = ['application/json', 'application/xml', 'application/javascript', 'application/sql', 'application/yaml',
  'application/x-ndjson', 'application/toml', 'image/svg+xml']

const textNames = /\.(json|jsonl|ndjson|csv|tsv|txt|md|log|ya?ml|toml|sql|xml|html?|svg|css|[cm]?[jt]sx?|py|go|rs|sh|env|ini)$/i

/** Decides how a file is shown. HTML and SVG could act as a page, so they are shown as text. */
export function previewKind(mimeType: string, name = ''): PreviewKind {
  const type = mimeType.split(';')[0]!.trim().toLowerCase()
  if ((type === 'application/octet-stream' || type === '') && textNames.test(name)) return 'text'
  if (pictures.includes(type)) return 'picture'
  if (type.startsWith('audio/')) return 'audio'
  if (type.startsWith('video/')) return 'video'
  if (type.startsWith('text/') || texts.includes(type) || type.endsWith('+json') || type.endsWith('+xml')) return 'text'

  return 'none'
}
