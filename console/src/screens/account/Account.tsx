import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/account'
import { api, read } from '../../api/client'
import { Page } from '../../components/Page'
import { Loaded } from '../../components/States'
import { Tabs } from '../../components/Tabs'
import { useURLState } from '../../url'
import { Closure } from './Closure'
import { Password, Profile } from './Profile'
import { SecondFactor } from './SecondFactor'
import { Sessions } from './Sessions'
import { Tokens } from './Tokens'

const tabs = [
  { id: 'profile', text: texts.profile },
  { id: 'security', text: texts.passwordAndSecondFactor },
  { id: 'sessions', text: texts.sessions },
  { id: 'tokens', text: texts.accessTokens },
]

/** The person's own account. */
export function Account() {
  const [tab] = useURLState('tab', 'profile')
  const query = useQuery({ queryKey: ['account'], queryFn: () => read(api.GET('/users/me')) })

  return (
    <Page title={texts.account}>
      <Tabs label={texts.account} tabs={tabs.map(({ id, text }) => ({
        text, active: id === tab, to: '.', search: (id === 'profile' ? {} : { tab: id }) as never,
      }))} />
      <Loaded query={query}>
        {({ content: user }) => (
          <>
            {tab === 'profile' && <Profile user={user} />}
            {tab === 'profile' && <Closure user={user} />}
            {tab === 'security' && <Password user={user} />}
            {tab === 'security' && <SecondFactor />}
            {tab === 'sessions' && <Sessions />}
            {tab === 'tokens' && <Tokens role={user.roleId} />}
          </>
        )}
      </Loaded>
    </Page>
  )
}
