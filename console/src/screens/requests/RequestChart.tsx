import { texts } from '#texts/requests'
import { buckets, microseconds, quantile, type Request } from './request'
import css from './Requests.module.css'

const bars = 60

/** The loaded requests over time, failures in red. */
export function RequestChart({ requests }: { requests: Request[] }) {
  const all = buckets(requests, bars)
  const most = Math.max(1, ...all.map((b) => b.good + b.failed))
  const failed = requests.filter((r) => r.status >= 400).length
  const durations = requests.map((r) => r.duration).sort((a, b) => a - b)

  return (
    <figure className={css.figure}>
      <div className={css.chart} aria-hidden="true">
        {all.map((b) => (
          <div key={b.from} title={texts.goodFailed(new Date(b.from).toLocaleString(), b.good + b.failed, b.failed)}>
            <div className={css.failed} style={{ height: `${(b.failed / most) * 100}%` }} />
            <div className={css.good} style={{ height: `${(b.good / most) * 100}%` }} />
          </div>
        ))}
      </div>
      <figcaption className={css.caption}>
        {texts.loadedRequestsFailedMedianThe99th(requests.length, failed, microseconds(quantile(durations, 0.5)), microseconds(quantile(durations, 0.99)))}
      </figcaption>
    </figure>
  )
}
