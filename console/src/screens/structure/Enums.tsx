import { useState } from 'react'
import { useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read, type Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { change } from '../../components/change'
import { Confirm } from '../../components/Dialog'
import { Menu } from '../../components/Menu'
import { Page } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'
import { useURLState } from '../../url'
import { AddValue, NewEnum, RenameValue } from './EnumForms'
import css from './Structure.module.css'

type Enum = Schemas['Enum']
export const fullName = (e: Enum) => `${e.schema}.${e.name}`
type Opened = { act: 'create' } | { act: 'add' | 'rename' | 'delete'; of: Enum } | null

/** Types with a fixed list of values. */
export function Enums() {
  const { project } = useParams({ strict: false }) as { project: string }
  const [page, setPage] = useURLState('page', '1')
  const [opened, setOpened] = useState<Opened>(null)
  const close = () => setOpened(null)
  const query = useQuery({
    queryKey: ['enums', project, page],
    queryFn: () => read(api.GET('/enums', {
      params: { header: inProject(project), query: { page: Number(page), sort: 'name' } },
    })),
  })
  const create = <Button needs="createEnum" look="primary" onClick={() => setOpened({ act: 'create' })}>Create enum</Button>

  return (
    <Page title="Enums" lead="Types whose values come from a list. Values can be added and renamed, never removed."
      actions={create}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title="No enum yet" action={create}>A column of an enum takes one of its values.</Empty>
        ) : (
          <>
            <EnumTable enums={content} onOpen={setOpened} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {opened?.act === 'create' && <NewEnum project={project} onClose={close} />}
      {opened?.act === 'add' && <AddValue project={project} of={opened.of} onClose={close} />}
      {opened?.act === 'rename' && <RenameValue project={project} of={opened.of} onClose={close} />}
      {opened?.act === 'delete' && <DeleteEnum project={project} of={opened.of} onClose={close} />}
    </Page>
  )
}

function EnumTable({ enums, onOpen }: { enums: Enum[]; onOpen: (opened: Opened) => void }) {
  return (
    <Table label="Enums" rows={enums} keyOf={(e) => String(e.id)} columns={[
      { title: 'Name', cell: (e) => <code className={css.wrap}>{fullName(e)}</code> },
      { title: 'Values', cell: (e) => (
        <span className={css.badges}>{e.values.map((v) => <Badge key={v}>{v}</Badge>)}</span>
      ) },
      { title: 'Actions', align: 'right', cell: (e) => (
        <Menu label={`Actions of ${e.name}`} items={[
          { text: 'Add value', needs: 'createEnumValue', onSelect: () => onOpen({ act: 'add', of: e }) },
          { text: 'Rename value', needs: 'renameEnumValue', onSelect: () => onOpen({ act: 'rename', of: e }) },
          { text: 'Delete enum', danger: true, needs: 'deleteEnum', onSelect: () => onOpen({ act: 'delete', of: e }) },
        ]} />
      ) },
    ]} />
  )
}

function DeleteEnum({ project, of, onClose }: { project: string; of: Enum; onClose: () => void }) {
  async function remove() {
    await change(api.DELETE('/enums/{enumName}', {
      params: { header: inProject(project), path: { enumName: fullName(of) } },
    }))
    await queries.invalidateQueries({ queryKey: ['enums', project] })
  }

  return (
    <Confirm title={`Delete ${fullName(of)}`} open onClose={onClose} action="Delete enum" onSubmit={remove}>
      <p>The type and its list of values are lost. While a column or function uses it, it stays.</p>
    </Confirm>
  )
}
