import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/forms'
import { api, read, type Schemas } from '../../api/client'
import { Card } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { filledDays } from './answers'
import css from './Form.module.css'

/** Counts of a form's responses, per day and per field. */
export function Statistics({ project, form }: { project: string; form: Schemas['FullForm'] }) {
  const query = useQuery({
    queryKey: ['responses', project, form.uuid, 'statistics'],
    queryFn: () => read(api.GET('/forms/{formUUID}/statistics', { params: { path: { formUUID: form.uuid } } })),
  })

  return (
    <Loaded query={query}>
      {({ content: s }) => s.total + s.partial === 0 ? (
        <Empty title={texts.noResponseYet}>{texts.countsAndAveragesAppearWith}</Empty>
      ) : (
        <>
          <Card title={texts.totalCompleteResponses(s.total.toLocaleString())}
            lead={texts.partialDiscardedByTheHoneypot(s.partial.toLocaleString(), s.blocked.toLocaleString())}>
            <Days days={filledDays(s.days)} />
          </Card>
          {s.fields.map((f) => (
            <Card key={f.fieldUuid} title={f.label}
              lead={texts.answeredAnswersRatioOfThe(f.answered.toLocaleString(), Math.round(f.ratio * 100))}>
              {f.options.length > 0 && <Options options={f.options} />}
              {typeof f.average === 'number' && (
                <p>{texts.averageFromMinToMax(f.average.toLocaleString(), String(f.min), String(f.max))}</p>
              )}
            </Card>
          ))}
        </>
      )}
    </Loaded>
  )
}

function Days({ days }: { days: { day: string; count: number }[] }) {
  const most = Math.max(1, ...days.map((d) => d.count))
  const first = days[0]?.day ?? ''
  const last = days[days.length - 1]?.day ?? ''

  return (
    <div>
      <div className={css.days} role="img" aria-label={texts.responsesByDayFromTo(first, last, most)}>
        {days.map((d) => (
          <div key={d.day} title={`${d.day}: ${d.count}`} style={{ height: `${(d.count / most) * 100}%` }} />
        ))}
      </div>
      <p>{texts.firstByUTCDay(first === last ? first : texts.firstToLast(first, last))}</p>
    </div>
  )
}

function Options({ options }: { options: Schemas['OptionCount'][] }) {
  const most = Math.max(1, ...options.map((o) => o.count))

  return (
    <dl className={css.bars}>
      {options.map((o) => (
        <div key={o.option}>
          <dt>{o.option}</dt>
          <dd>
            <div className={css.track} aria-hidden="true">
              <div className={css.bar} style={{ width: `${(o.count / most) * 100}%` }} />
            </div>
            <span>{o.count.toLocaleString()}</span>
          </dd>
        </div>
      ))}
    </dl>
  )
}
