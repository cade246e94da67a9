import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/structure'
import { api, read, type Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { change } from '../../components/change'
import { Confirm } from '../../components/Dialog'
import { Row } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { IndexForm } from './IndexForm'
import { onTable, reload, type TableRef } from './table'
import css from './Structure.module.css'

type Index = Schemas['Index']

const pollEvery = 2000 // ms, while an index is being built

export function Indexes({ table }: { table: TableRef }) {
  const [adds, setAdds] = useState(false)
  const [dropped, setDropped] = useState<Index | null>(null)
  const query = useQuery({
    queryKey: ['tables', table.project, table.uuid, 'indexes'],
    queryFn: () => read(api.GET('/tables/{tableUUID}/indexes', { params: onTable(table) })),
    refetchInterval: ({ state }) => (state.data?.content.some((i) => i.status === 'building') ? pollEvery : false),
  })
  const add = <Button needs="createIndex" look="primary" onClick={() => setAdds(true)}>{texts.createIndex}</Button>

  return (
    <>
      <Row>{add}</Row>
      <Loaded query={query}>
        {({ content }) => content.length === 0 ? (
          <Empty title={texts.noIndexYet} action={add}>{texts.anIndexMakesFiltersAnd}</Empty>
        ) : (
          <Table label={texts.indexesOfName(table.name)} rows={content} keyOf={(i) => i.name} columns={[
            { title: texts.name, cell: (i) => <code className={css.wrap}>{i.name}</code> },
            { title: texts.keys, cell: (i) => <Keys index={i} /> },
            { title: texts.kind, narrow: true, cell: (i) => <Kind index={i} /> },
            { title: texts.state, cell: (i) => <State index={i} /> },
            { title: texts.actions, align: 'right', cell: (i) => i.constraint ? (
              <span className={css.quiet}>{texts.partOfAConstraint}</span>
            ) : (
              <Button needs="deleteIndex" look="danger" aria-label={texts.dropName(i.name)} onClick={() => setDropped(i)}>
                {texts.drop}
              </Button>
            ) },
          ]} />
        )}
      </Loaded>
      {adds && <IndexForm table={table} onClose={() => setAdds(false)} />}
      {dropped && <DropIndex table={table} index={dropped} onClose={() => setDropped(null)} />}
    </>
  )
}

function Keys({ index }: { index: Index }) {
  return (
    <code className={css.expression} title={index.definition}>
      {index.keys.join(', ')}
      {index.include.length > 0 && ` include ${index.include.join(', ')}`}
      {index.where !== null && ` where ${index.where}`}
    </code>
  )
}

function Kind({ index }: { index: Index }) {
  return (
    <span className={css.badges}>
      <Badge>{index.method}</Badge>
      {index.primary && <Badge tone="success">{texts.primaryKey2}</Badge>}
      {index.unique && !index.primary && <Badge>{texts.unique2}</Badge>}
      {index.nullsNotDistinct && <Badge>{texts.nullsNotDistinct}</Badge>}
    </span>
  )
}

function State({ index }: { index: Index }) {
  switch (index.status) {
    case 'ready':
      return <Badge tone="success">{texts.ready}</Badge>
    case 'building':
      return <Badge tone="warning">{texts.building}</Badge>
    case 'failed':
      return (
        <>
          <Badge tone="danger">{texts.failed}</Badge>
          <p className={css.wrap}>{index.error}</p>
        </>
      )
  }
}

function DropIndex({ table, index, onClose }: { table: TableRef; index: Index; onClose: () => void }) {
  async function drop() {
    await change(api.DELETE('/tables/{tableUUID}/indexes/{indexName}', {
      params: { header: onTable(table).header, path: { tableUUID: table.uuid, indexName: index.name } },
    }))
    await reload(table.project)
  }

  return (
    <Confirm title={texts.dropName(index.name)} open onClose={onClose} action={texts.dropIndex} onSubmit={drop}>
      <p>
        {texts.noRowsAreLostQueries}
        {index.unique ? texts.andEqualValuesAreNo : ''}.
      </p>
    </Confirm>
  )
}
