import { Page } from '../../components/Page'

export function Migrations() {
  return <Page title="Migrations">{null}</Page>
}
