import { useState } from 'react'
import { TextField } from '../../components/Field'
import { Button } from '../../components/Button'
import { NewProject } from '../../components/NewProject'
import { Page } from '../../components/Page'
import { DeletedProjects, ProjectList } from '../../components/ProjectList'
import { SearchTabs } from '../../components/SearchTabs'
import { useURLState } from '../../url'

const tabs = [{ value: 'present', text: 'Projects' }, { value: 'deleted', text: 'Deleted' }]

/** All projects that the user can see. */
export function Projects() {
  const [tab] = useURLState('tab', 'present')
  const [search, setSearch] = useURLState('search', '')
  const [creates, setCreates] = useState(false)

  return (
    <Page title="Projects" lead="Each project is a PostgreSQL database with its own users, files and keys."
      actions={<Button look="primary" onClick={() => setCreates(true)}>New project</Button>}>
      <SearchTabs label="Projects" current={tab} tabs={tabs} />
      <TextField label="Search by name" type="search" defaultValue={search} onChange={(e) => setSearch(e.target.value)} />
      {tab === 'deleted' ? <DeletedProjects search={search} /> : <ProjectList search={search} onCreate={() => setCreates(true)} />}
      {creates && <NewProject onClose={() => setCreates(false)} />}
    </Page>
  )
}
