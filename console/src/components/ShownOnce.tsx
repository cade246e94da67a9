import type { ReactNode } from 'react'
import { texts } from '#texts/components'
import { Code } from './Bits'
import { Button } from './Button'
import { Dialog } from './Dialog'
import { Row, Stack } from './Page'

/** Shows secrets that the server will not show again. */
export function ShownOnce({ title, values, children, onClose }: {
  title: string
  values: { label: string; value: string }[]
  children?: ReactNode
  onClose: () => void
}) {
  return (
    <Dialog title={title} open onClose={onClose}>
      <Stack>
        <p>{texts.copyItNowItIs}</p>
        {values.map(({ label, value }) => (
          <div key={label}>
            <h3>{label}</h3>
            <Code text={value} label={label} />
          </div>
        ))}
        {children}
        <Row>
          <Button look="primary" onClick={onClose}>{texts.iHaveCopiedIt}</Button>
        </Row>
      </Stack>
    </Dialog>
  )
}
