import { Page } from '../../components/Page'

export function Account() {
  return <Page title="Account">{null}</Page>
}
