import { Page } from '../../components/Page'

export function Organization() {
  return <Page title="Organization">{null}</Page>
}
