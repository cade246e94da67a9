import { Page } from '../../components/Page'

export function Settings() {
  return <Page title="Settings">{null}</Page>
}
