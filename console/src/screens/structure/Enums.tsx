import { Page } from '../../components/Page'

export function Enums() {
  return <Page title="Enums">{null}</Page>
}
