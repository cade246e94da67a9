import { useQuery } from '@tanstack/react-query'
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
        <Empty title="No response yet">Counts and averages appear with the first response.</Empty>
      ) : (
        <>
          <Card title={`${s.total.toLocaleString()} complete responses`}
            lead={`${s.partial.toLocaleString()} partial, ${s.blocked.toLocaleString()} discarded by the honeypot`}>
            <Days days={filledDays(s.days)} />
          </Card>
          {s.fields.map((f) => (
            <Card key={f.fieldUuid} title={f.label}
              lead={`${f.answered.toLocaleString()} answers, ${Math.round(f.ratio * 100)} % of the responses`}>
              {f.options.length > 0 && <Options options={f.options} />}
              {typeof f.average === 'number' && (
                <p>Average {f.average.toLocaleString()}, from {String(f.min)} to {String(f.max)}</p>
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
      <div className={css.days} role="img" aria-label={`Responses by day from ${first} to ${last}, at most ${most} a day`}>
        {days.map((d) => (
          <div key={d.day} title={`${d.day}: ${d.count}`} style={{ height: `${(d.count / most) * 100}%` }} />
        ))}
      </div>
      <p>{first === last ? first : `${first} to ${last}`}, by UTC day</p>
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
