import { Page } from '../../components/Page'

export function Audit() {
  return <Page title="Audit">{null}</Page>
}
