import { Page } from '../../components/Page'

export function Forms() {
  return <Page title="Forms">{null}</Page>
}
