import { useState } from 'react'
import { texts } from '#texts/organization'
import { Button } from '../../components/Button'
import { NewProject } from '../../components/NewProject'
import { Card } from '../../components/Page'
import { DeletedProjects, ProjectList } from '../../components/ProjectList'
import { HeldRole } from '../../components/rights'
import type { Schemas } from '../../api/client'

/** The projects of an organization, and those that can still be restored. */
export function OrganizationProjects({ organization }: { organization: Schemas['Organization'] }) {
  const [creates, setCreates] = useState(false)

  return (
    <HeldRole value={organization.roleId}>
      <Card title={texts.projects} lead={texts.allMembersReachThemEach}
        actions={<Button needs="createProject" look="primary" onClick={() => setCreates(true)}>{texts.newProject}</Button>}>
        <ProjectList needs="createProject" organization={organization.uuid} onCreate={() => setCreates(true)} />
      </Card>
      <Card title={texts.deletedProjects} lead={texts.ownersCanRestoreThemUntil}>
        <DeletedProjects organization={organization.uuid} />
      </Card>
      {creates && <NewProject organization={organization.uuid} onClose={() => setCreates(false)} />}
    </HeldRole>
  )
}
