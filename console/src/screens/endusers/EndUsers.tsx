import { Page } from '../../components/Page'

export function EndUsers() {
  return <Page title="EndUsers">{null}</Page>
}
