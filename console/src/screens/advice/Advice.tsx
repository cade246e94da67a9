import { useState } from 'react'
import { useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/advice'
import { api, inProject, read } from '../../api/client'
import { Badge, Code } from '../../components/Bits'
import { Button, ButtonLink } from '../../components/Button'
import { Page, Row } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { identifier } from '../../components/sqlText'
import { remedyOf, subjectOf, tableOf, type Finding } from './remedies'
import css from './Advice.module.css'

const levels = {
  error: { title: texts.errors, lead: texts.dataThatIsProbablyPrivate, tone: 'danger' },
  warning: { title: texts.warnings, lead: texts.probablyNotWhatYouMeant, tone: 'warning' },
  info: { title: texts.hints, lead: texts.performanceAndOrder, tone: 'neutral' },
} as const

const step = 25 // findings shown at once: some ask for columns of their own

/** Probable security and performance problems of the database. */
export function Advice() {
  const { project } = useParams({ strict: false }) as { project: string }
  const query = useQuery({
    queryKey: ['advice', project],
    queryFn: () => read(api.GET('/projects/{projectUUID}/lint', { params: { path: { projectUUID: project } } })),
  })

  return (
    <Page title={texts.advice} lead={texts.probableSecurityAndPerformanceProblems} actions={
      <Button busy={query.isFetching} onClick={() => void query.refetch()}>{texts.checkAgain}</Button>
    }>
      <Loaded query={query}>
        {({ content }) => content.length === 0 ? (
          <Empty title={texts.nothingToMend}>
            {texts.rowLevelSecurityGrantsFunctions}
          </Empty>
        ) : (
          <>
            {(Object.keys(levels) as (keyof typeof levels)[]).map((level) => {
              const findings = content.filter((f) => f.severity === level)
              return findings.length > 0 && <Level key={level} project={project} level={level} findings={findings} />
            })}
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Level({ project, level, findings }: { project: string; level: keyof typeof levels; findings: Finding[] }) {
  const { title, lead, tone } = levels[level]
  const [shown, setShown] = useState(step)
  const more = Math.min(step, findings.length - shown)

  return (
    <section className={css.level} aria-label={title}>
      <h2>
        {title} <Badge tone={tone}>{findings.length}</Badge>
      </h2>
      <p className={css.quiet}>{lead}</p>
      <ul className={css.list}>
        {findings.slice(0, shown).map((f) => <FindingItem key={f.code + f.object} project={project} finding={f} />)}
      </ul>
      {more > 0 && <Button onClick={() => setShown(shown + step)}>{texts.showMore(more)}</Button>}
    </section>
  )
}

function FindingItem({ project, finding }: { project: string; finding: Finding }) {
  const columns = useForeignColumns(project, finding)
  const { sql, table, tab } = remedyOf(finding, columns)

  return (
    <li>
      <p>
        <strong className={css.object}>{finding.object}</strong> <Badge>{finding.code}</Badge>
      </p>
      <p>{finding.sentence}</p>
      {sql !== null && <Code text={sql} label={texts.sqlForObject(finding.object)} />}
      <Row>
        {sql !== null && (
          <ButtonLink needs="runSQL" to={`/projects/${project}/sql` as string} search={{ query: sql } as never}>{texts.openInSQL}</ButtonLink>
        )}
        {table !== null && (
          <ButtonLink to={`/projects/${project}/tables/${encodeURIComponent(table)}/structure` as string}
            search={(tab === 'columns' ? {} : { tab }) as never}>
            {texts.openTab(tab)}
          </ButtonLink>
        )}
      </Row>
    </li>
  )
}

/** The columns of a foreign key that a finding names, as SQL has them. */
function useForeignColumns(project: string, { code, object }: Finding): string[] {
  const { name, relation } = subjectOf(object)
  const table = tableOf(relation) ?? ''
  const { data } = useQuery({
    queryKey: ['tables', project, table, 'constraints'],
    enabled: code === 'foreign_key_without_index' && table !== '',
    queryFn: () => read(api.GET('/tables/{tableUUID}/constraints', {
      params: { header: inProject(project), path: { tableUUID: table } },
    })),
  })
  const key = data?.content.find((c) => c.type === 'foreign' && identifier(c.name) === name)

  return key?.columns.map(identifier) ?? []
}
