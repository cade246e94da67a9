import { useMemo, useRef } from 'react'
import { texts } from '#texts/diagram'
import { Button, ButtonLink, IconButton } from '../../components/Button'
import { inputClass } from '../../components/Field'
import { useProject } from '../../components/Filters'
import { Page } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import type { Entry } from '../../components/tableList'
import { saveText } from '../../components/transfer'
import { useURLState } from '../../url'
import { Drawing } from './Drawing'
import { svgOf } from './exportSVG'
import { mostTables, useGraph, useSchemas } from './graph'
import { layOut, type Detail, type Table } from './layout'
import { useViewport } from './useViewport'
import css from './Diagram.module.css'

const clear = 25 // tables up to which all columns are shown at first

/** The tables of a schema and the foreign keys between them. */
export function Diagram() {
  const project = useProject()
  const query = useSchemas(project)

  return (
    <Page full title={texts.diagram} lead={texts.tablesAndTheForeignKeys}>
      <Loaded query={query}>
        {(entries) => entries.length === 0 ? (
          <Empty title={texts.noTableYet} action={<ButtonLink to={`/projects/${project}/tables` as string}>{texts.openTables}</ButtonLink>}>
            {texts.createTablesAndColumnsThat}
          </Empty>
        ) : <Schema project={project} entries={entries} />}
      </Loaded>
    </Page>
  )
}

function Schema({ project, entries }: { project: string; entries: Entry[] }) {
  const schemas = [...new Set(entries.map((t) => t.schema))].sort()
  const [schema, setSchema] = useURLState('schema', schemas.includes('public') ? 'public' : schemas[0] ?? 'public')
  const count = entries.filter((t) => t.schema === schema).length
  const [detail, setDetail] = useURLState('detail', count <= clear ? 'all' : 'keys')
  const query = useGraph(project, entries, schema)

  return (
    <>
      <div className={css.bar}>
        <select className={`${inputClass} ${css.choice}`} aria-label={texts.schema} value={schema} onChange={(e) => setSchema(e.target.value)}>
          {schemas.map((s) => <option key={s}>{s}</option>)}
        </select>
        <select className={`${inputClass} ${css.choice}`} aria-label={texts.columns} value={detail} onChange={(e) => setDetail(e.target.value)}>
          <option value="keys">{texts.keysOnly}</option>
          <option value="all">{texts.allColumns}</option>
        </select>
        {count > mostTables && <span>{texts.theFirstOfTablesAre(mostTables, count)}</span>}
      </div>
      <Loaded query={query} rows={10}>
        {(tables) => <Picture key={schema} project={project} schema={schema} tables={tables} detail={detail === 'all' ? 'all' : 'keys'} />}
      </Loaded>
    </>
  )
}

function Picture({ project, schema, tables, detail }: { project: string; schema: string; tables: Table[]; detail: Detail }) {
  const layout = useMemo(() => layOut(tables, detail), [tables, detail])
  const { frame, view, fit, zoomIn, zoomOut, handlers } = useViewport(layout.width, layout.height)
  const svg = useRef<SVGSVGElement>(null)
  const name = schema.replace(/[^\p{L}\p{N}_-]/gu, '') || 'schema'

  return (
    <div className={css.picture}>
      <div ref={frame} className={css.frame} tabIndex={0} role="region" {...handlers}
        aria-label={texts.diagramArrowKeysMovePlus}>
        <Drawing project={project} schema={schema} layout={layout} svg={svg}
          transform={`translate(${view.x} ${view.y}) scale(${view.scale})`} />
      </div>
      <div className={css.tools}>
        <IconButton label={texts.zoomIn} onClick={zoomIn}>+</IconButton>
        <IconButton label={texts.zoomOut} onClick={zoomOut}>−</IconButton>
        <Button look="quiet" onClick={fit}>{texts.showAll}</Button>
        <Button look="quiet" onClick={() => svg.current && saveText(svgOf(svg.current, layout.width, layout.height), `${name}.svg`)}>
          {texts.exportSVG}
        </Button>
      </div>
    </div>
  )
}
