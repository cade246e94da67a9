import { Page } from '../../components/Page'

export function Structure() {
  return <Page title="Structure">{null}</Page>
}
