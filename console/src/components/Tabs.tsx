import { Link, type LinkProps } from '@tanstack/react-router'
import css from './Tabs.module.css'

type Tab = LinkProps & {
  text: string
  active?: boolean // decides instead of the address, as where the query has more than the tab
}

/** Tabs that are links, because the URL is the state. */
export function Tabs({ label, tabs }: { label: string; tabs: Tab[] }) {
  return (
    <nav className={css.tabs} aria-label={label}>
      {tabs.map(({ text, active, ...link }) => (
        <Link key={text} {...link} className={css.tab}
          {...(active === undefined
            ? { activeProps: { 'data-active': '' }, activeOptions: { exact: true } }
            : active && { 'data-active': '', 'aria-current': 'page' as const })}>
          {text}
        </Link>
      ))}
    </nav>
  )
}
