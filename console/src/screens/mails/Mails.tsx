import { Page } from '../../components/Page'

export function Mails() {
  return <Page title="Mails">{null}</Page>
}
