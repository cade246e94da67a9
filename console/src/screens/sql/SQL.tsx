import { Page } from '../../components/Page'

export function SQL() {
  return <Page title="SQL">{null}</Page>
}
