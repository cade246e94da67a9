import { useState } from 'react'
import { useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/structure'
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
  const create = <Button needs="createEnum" look="primary" onClick={() => setOpened({ act: 'create' })}>{texts.createEnum}</Button>

  return (
    <Page title={texts.enums} lead={texts.typesWhoseValuesComeFrom}
      actions={create}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noEnumYet} action={create}>{texts.aColumnOfAnEnum}</Empty>
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
    <Table label={texts.enums} rows={enums} keyOf={(e) => String(e.id)} columns={[
      { title: texts.name, cell: (e) => <code className={css.wrap}>{fullName(e)}</code> },
      { title: texts.values, cell: (e) => (
        <span className={css.badges}>{e.values.map((v) => <Badge key={v}>{v}</Badge>)}</span>
      ) },
      { title: texts.actions, align: 'right', cell: (e) => (
        <Menu label={texts.actionsOfName(e.name)} items={[
          { text: texts.addValue, needs: 'createEnumValue', onSelect: () => onOpen({ act: 'add', of: e }) },
          { text: texts.renameValue, needs: 'renameEnumValue', onSelect: () => onOpen({ act: 'rename', of: e }) },
          { text: texts.deleteEnum, danger: true, needs: 'deleteEnum', onSelect: () => onOpen({ act: 'delete', of: e }) },
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
    <Confirm title={texts.deleteOf(fullName(of))} open onClose={onClose} action={texts.deleteEnum} onSubmit={remove}>
      <p>{texts.theTypeAndItsList}</p>
    </Confirm>
  )
}
