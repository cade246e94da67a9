import { useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/forms'
import { api, read } from '../../api/client'
import { ButtonLink } from '../../components/Button'
import { useFilters } from '../../components/Filters'
import { Page, Row } from '../../components/Page'
import { SearchTabs } from '../../components/SearchTabs'
import { Loaded } from '../../components/States'
import { Fields } from './Fields'
import { FormState } from './Forms'
import { FormSettings } from './FormSettings'
import { Responses } from './Responses'
import { Sharing } from './Sharing'
import { Statistics } from './Statistics'

const tabs = [
  { value: 'fields', text: texts.fields },
  { value: 'settings', text: texts.settings },
  { value: 'sharing', text: texts.sharing },
  { value: 'responses', text: texts.responses },
  { value: 'statistics', text: texts.statistics },
]

/** One form. */
export function Form() {
  const { project, form: uuid } = useParams({ strict: false }) as { project: string; form: string }
  const [{ tab }] = useFilters('tab')
  const current = tabs.some((t) => t.value === tab) ? tab : 'fields'
  const query = useQuery({
    queryKey: ['forms', project, 'one', uuid],
    queryFn: () => read(api.GET('/forms/{formUUID}', { params: { path: { formUUID: uuid } } })),
  })
  const form = query.data?.content

  return (
    <Page title={form?.name ?? texts.form} lead={form?.description ?? undefined}
      actions={<Row>{form && <FormState state={form.state} />}<ButtonLink to={`/projects/${project}/forms` as string}>{texts.allForms}</ButtonLink></Row>}>
      <SearchTabs label={texts.form} current={current} tabs={tabs} />
      <Loaded query={query}>
        {({ content }) => {
          switch (current) {
            case 'settings':
              return <FormSettings key={content.updatedAt} project={project} form={content} />
            case 'sharing':
              return <Sharing project={project} form={content} />
            case 'responses':
              return <Responses project={project} form={content} />
            case 'statistics':
              return <Statistics project={project} form={content} />
            default:
              return <Fields project={project} form={content} />
          }
        }}
      </Loaded>
    </Page>
  )
}
