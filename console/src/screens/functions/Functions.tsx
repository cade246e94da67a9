import { Page } from '../../components/Page'

export function Functions() {
  return <Page title="Functions">{null}</Page>
}
