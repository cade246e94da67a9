import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/organization'
import { api, read } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { roleName } from '../../components/Roles'
import { Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'
import { useURLState } from '../../url'

/** The organizations of the person. */
export function OrganizationList({ current }: { current: string }) {
  const [page, setPage] = useURLState('page', '1')
  const [creates, setCreates] = useState(false)
  const query = useQuery({
    queryKey: ['organizations', page],
    queryFn: () => read(api.GET('/organizations', { params: { query: { page: Number(page), sort: 'name', order: 'asc' } } })),
  })

  return (
    <Card title={texts.yourOrganizations} lead={texts.eachHasItsOwnMembers}
      actions={<Button look="primary" onClick={() => setCreates(true)}>{texts.createOrganization}</Button>}>
      <Loaded query={query}>
        {({ content, metadata }) => (
          <>
            <Table label={texts.organizations} rows={content} keyOf={(o) => o.uuid} columns={[
              { title: texts.name, cell: (o) => (
                <><Link to={`/organizations/${o.uuid}` as string}>{o.name}</Link> {o.uuid === current && <Badge>{texts.thisOne}</Badge>}</>
              ) },
              { title: texts.yourRole, cell: (o) => roleName(o.roleId) },
              { title: texts.created, cell: (o) => <Time at={o.createdAt} />, narrow: true },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {creates && <NewOrganization onClose={() => setCreates(false)} />}
    </Card>
  )
}

function NewOrganization({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [idempotency] = useState(() => crypto.randomUUID())

  return (
    <FormDialog title={texts.newOrganization} open onClose={onClose} action={texts.createOrganization} onSubmit={async () => {
      const { content } = await read(api.POST('/organizations', {
        body: { name }, headers: { 'Idempotency-Key': idempotency },
      }))
      await queries.invalidateQueries({ queryKey: ['organizations'] })
      await navigate({ to: `/organizations/${content.uuid}` })
    }}>
      <TextField label={texts.name} required autoFocus value={name} onChange={(e) => setName(e.target.value)} />
    </FormDialog>
  )
}
