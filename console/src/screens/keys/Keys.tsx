import { useParams } from '@tanstack/react-router'
import { Page } from '../../components/Page'
import { Tabs } from '../../components/Tabs'
import { useURLState } from '../../url'
import { DatabaseCredentials } from './DatabaseCredentials'
import { JWTKeys } from './JWTKeys'
import { ProjectKeys } from './ProjectKeys'
import { S3Keys } from './S3Keys'
import { VaultSecrets } from './VaultSecrets'

const tabs = [
  { id: 'api', text: 'API keys' },
  { id: 'jwt', text: 'Tokens' },
  { id: 's3', text: 'S3 keys' },
  { id: 'database', text: 'Database' },
  { id: 'vault', text: 'Vault' },
]

/** The credentials by which programs reach the project. */
export function Keys() {
  const { project } = useParams({ strict: false }) as { project: string }
  const [tab] = useURLState('tab', 'api')

  return (
    <Page title="Keys" lead="Credentials for programs that use this project, and secrets that its functions use.">
      <Tabs label="Kinds of keys" tabs={tabs.map(({ id, text }) => ({
        text, active: id === tab, to: '.', search: (id === 'api' ? {} : { tab: id }) as never,
      }))} />
      {tab === 'api' && <ProjectKeys project={project} />}
      {tab === 'jwt' && <JWTKeys project={project} />}
      {tab === 's3' && <S3Keys project={project} />}
      {tab === 'database' && <DatabaseCredentials project={project} />}
      {tab === 'vault' && <VaultSecrets project={project} />}
    </Page>
  )
}
