import { useState } from 'react'
import { texts } from '#texts/projects'
import { TextField } from '../../components/Field'
import { Button } from '../../components/Button'
import { NewProject } from '../../components/NewProject'
import { Page } from '../../components/Page'
import { DeletedProjects, ProjectList } from '../../components/ProjectList'
import { SearchTabs } from '../../components/SearchTabs'
import { useURLState } from '../../url'

const tabs = [{ value: 'present', text: texts.projects }, { value: 'deleted', text: texts.deleted }]

/** All projects that the user can see. */
export function Projects() {
  const [tab] = useURLState('tab', 'present')
  const [search, setSearch] = useURLState('search', '')
  const [creates, setCreates] = useState(false)

  return (
    <Page title={texts.projects} lead={texts.eachProjectIsAPostgreSQL}
      actions={<Button look="primary" onClick={() => setCreates(true)}>{texts.newProject}</Button>}>
      <SearchTabs label={texts.projects} current={tab} tabs={tabs} />
      <TextField label={texts.searchByName} type="search" defaultValue={search} onChange={(e) => setSearch(e.target.value)} />
      {tab === 'deleted' ? <DeletedProjects search={search} /> : <ProjectList search={search} onCreate={() => setCreates(true)} />}
      {creates && <NewProject onClose={() => setCreates(false)} />}
    </Page>
  )
}
