import { ButtonLink } from '../components/Button'
import { Empty } from '../components/States'

export function NotFound() {
  return (
    <Empty title="There is no page here" action={<ButtonLink to="/">All projects</ButtonLink>}>
      The address may be misspelled, or the page has moved.
    </Empty>
  )
}
