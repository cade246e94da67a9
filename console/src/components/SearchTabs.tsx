import { Link } from '@tanstack/react-router'
import css from './Tabs.module.css'

/** Tabs inside one screen, kept in the URL's query as tab; the first one is the default. */
export function SearchTabs({ label, current, tabs }: {
  label: string
  current: string
  tabs: { value: string; text: string }[]
}) {
  return (
    <nav className={css.tabs} aria-label={label}>
      {tabs.map(({ value, text }, i) => (
        <Link key={value} to="." search={(i === 0 ? {} : { tab: value }) as never} className={css.tab}
          {...(value === current && { 'data-active': '', 'aria-current': 'page' as const })}>
          {text}
        </Link>
      ))}
    </nav>
  )
}
