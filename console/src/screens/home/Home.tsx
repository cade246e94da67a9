import { Page } from '../../components/Page'

export function Home() {
  return <Page title="Home">{null}</Page>
}
