import { Page } from '../../components/Page'

export function Backups() {
  return <Page title="Backups">{null}</Page>
}
