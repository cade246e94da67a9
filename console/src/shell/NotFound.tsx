import { texts } from '#texts/shell'
import { ButtonLink } from '../components/Button'
import { Empty } from '../components/States'

export function NotFound() {
  return (
    <Empty title={texts.thereIsNoPageHere} action={<ButtonLink to="/">{texts.allProjects}</ButtonLink>}>
      {texts.theAddressMayBeMisspelled}
    </Empty>
  )
}
