import { useParams } from '@tanstack/react-router'
import { texts } from '#texts/keys'
import { Page } from '../../components/Page'
import { Tabs } from '../../components/Tabs'
import { useURLState } from '../../url'
import { DatabaseCredentials } from './DatabaseCredentials'
import { JWTKeys } from './JWTKeys'
import { ProjectKeys } from './ProjectKeys'
import { S3Keys } from './S3Keys'
import { VaultSecrets } from './VaultSecrets'

const tabs = [
  { id: 'api', text: texts.apiKeys },
  { id: 'jwt', text: texts.tokens },
  { id: 's3', text: texts.s3Keys },
  { id: 'database', text: texts.database },
  { id: 'vault', text: texts.vault },
]

/** The credentials by which programs reach the project. */
export function Keys() {
  const { project } = useParams({ strict: false }) as { project: string }
  const [tab] = useURLState('tab', 'api')

  return (
    <Page title={texts.keys} lead={texts.credentialsForProgramsThatUse}>
      <Tabs label={texts.kindsOfKeys} tabs={tabs.map(({ id, text }) => ({
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
