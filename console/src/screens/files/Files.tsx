import { Page } from '../../components/Page'

export function Files() {
  return <Page title="Files">{null}</Page>
}
