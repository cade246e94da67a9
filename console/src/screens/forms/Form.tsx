import { Page } from '../../components/Page'

export function Form() {
  return <Page title="Form">{null}</Page>
}
