import { Page } from '../../components/Page'

export function SignIn() {
  return <Page title="Sign in">{null}</Page>
}

export function SignUp() {
  return <Page title="Sign up">{null}</Page>
}

export function Forgotten() {
  return <Page title="Forgotten password">{null}</Page>
}
