import { Page } from '../../components/Page'

export function Requests() {
  return <Page title="Requests">{null}</Page>
}
