import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
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
  const add = <Button needs="createIndex" look="primary" onClick={() => setAdds(true)}>Create index</Button>

  return (
    <>
      <Row>{add}</Row>
      <Loaded query={query}>
        {({ content }) => content.length === 0 ? (
          <Empty title="No index yet" action={add}>An index makes filters and sorts by its columns fast.</Empty>
        ) : (
          <Table label={`Indexes of ${table.name}`} rows={content} keyOf={(i) => i.name} columns={[
            { title: 'Name', cell: (i) => <code className={css.wrap}>{i.name}</code> },
            { title: 'Keys', cell: (i) => <Keys index={i} /> },
            { title: 'Kind', narrow: true, cell: (i) => <Kind index={i} /> },
            { title: 'State', cell: (i) => <State index={i} /> },
            { title: 'Actions', align: 'right', cell: (i) => i.constraint ? (
              <span className={css.quiet}>part of a constraint</span>
            ) : (
              <Button needs="deleteIndex" look="danger" aria-label={`Drop ${i.name}`} onClick={() => setDropped(i)}>
                Drop
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
      {index.primary && <Badge tone="success">primary key</Badge>}
      {index.unique && !index.primary && <Badge>unique</Badge>}
      {index.nullsNotDistinct && <Badge>nulls not distinct</Badge>}
    </span>
  )
}

function State({ index }: { index: Index }) {
  switch (index.status) {
    case 'ready':
      return <Badge tone="success">ready</Badge>
    case 'building':
      return <Badge tone="warning">building</Badge>
    case 'failed':
      return (
        <>
          <Badge tone="danger">failed</Badge>
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
    <Confirm title={`Drop ${index.name}`} open onClose={onClose} action="Drop index" onSubmit={drop}>
      <p>
        No rows are lost. Queries that the index serves become slower
        {index.unique ? ', and equal values are no longer refused' : ''}.
      </p>
    </Confirm>
  )
}
