import { Page } from '../../components/Page'

export function EndUser() {
  return <Page title="EndUser">{null}</Page>
}
