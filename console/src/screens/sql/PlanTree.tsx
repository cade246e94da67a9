import { texts } from '#texts/sql'
import type { Plan, Step } from './plan'
import css from './PlanTree.module.css'

/** A plan as a tree: where the time goes. */
export function PlanTree({ plan }: { plan: Plan }) {
  return (
    <div className={css.frame} tabIndex={0} role="region" aria-label={texts.plan}>
      <table className={css.table}>
        <thead>
          <tr>
            <th scope="col">{texts.step}</th>
            <th scope="col" className={css.number}>{texts.ownTime}</th>
            <th scope="col" className={css.number}>{texts.withStepsBelow}</th>
            <th scope="col" className={css.number}>{texts.rows2}</th>
            <th scope="col" className={css.number}>{texts.planned}</th>
            <th scope="col" className={css.number}>{texts.loops}</th>
          </tr>
        </thead>
        <tbody>
          {plan.steps.map((step, i) => <StepRow key={i} step={step} />)}
        </tbody>
      </table>
      <p className={css.sum}>
        {plan.planningMs !== null && texts.planningPlanningMs(ms(plan.planningMs))}
        {plan.executionMs !== null && texts.executionExecutionMs(ms(plan.executionMs))}
      </p>
    </div>
  )
}

function StepRow({ step }: { step: Step }) {
  return (
    <tr>
      <td>
        <div className={css.step} style={{ paddingInlineStart: `${step.depth * 1.25}rem` }}>
          <strong>{step.title}</strong>
          {step.details.map((d) => <span key={d} className={css.detail}>{d}</span>)}
          <meter className={css.share} min={0} max={1} value={step.share}
            aria-label={texts.shareOfThe(Math.round(step.share * 100), step.ownMs === null ? texts.cost : texts.time)} />
        </div>
      </td>
      <td className={css.number}>{step.ownMs === null ? '' : ms(step.ownMs)}</td>
      <td className={css.number}>{step.totalMs === null ? '' : ms(step.totalMs)}</td>
      <td className={css.number}>{step.rows?.toLocaleString() ?? ''}</td>
      <td className={`${css.number} ${isMisjudged(step) ? css.misjudged : ''}`}
        title={isMisjudged(step) ? texts.theEstimateIsFarOff : undefined}>
        {step.plannedRows.toLocaleString()}
      </td>
      <td className={css.number}>{step.loops.toLocaleString()}</td>
    </tr>
  )
}

const ms = (time: number) => texts.timeMs(time < 10 ? time.toFixed(2) : time.toFixed(0))

/** Reports whether the planner was wrong by a factor of ten. */
function isMisjudged({ rows, plannedRows }: Step): boolean {
  if (rows === null) return false

  return Math.max(rows, plannedRows) > 10 * Math.max(1, Math.min(rows, plannedRows))
}
