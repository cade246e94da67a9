import { Page } from '../../components/Page'

export function Tables() {
  return <Page title="Tables">{null}</Page>
}
