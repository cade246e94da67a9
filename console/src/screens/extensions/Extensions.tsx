import { Page } from '../../components/Page'

export function Extensions() {
  return <Page title="Extensions">{null}</Page>
}
