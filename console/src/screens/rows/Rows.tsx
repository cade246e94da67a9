import { Page } from '../../components/Page'

export function Rows() {
  return <Page title="Rows">{null}</Page>
}
