import { Page } from '../../components/Page'

export function Admin() {
  return <Page title="Admin">{null}</Page>
}
