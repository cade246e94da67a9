export function ImportDialog(_: { project: string; table?: string; onClose: () => void }) {
  return null
}
