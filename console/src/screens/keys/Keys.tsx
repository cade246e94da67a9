import { Page } from '../../components/Page'

export function Keys() {
  return <Page title="Keys">{null}</Page>
}
