import { Page } from '../../components/Page'

export function Containers() {
  return <Page title="Containers">{null}</Page>
}
