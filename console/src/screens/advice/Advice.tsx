import { Page } from '../../components/Page'

export function Advice() {
  return <Page title="Advice">{null}</Page>
}
