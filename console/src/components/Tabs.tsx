import { Link, type LinkProps } from '@tanstack/react-router'
import css from './Tabs.module.css'

/** Tabs that are links, because the URL is the state. */
export function Tabs({ label, tabs }: { label: string; tabs: (LinkProps & { text: string })[] }) {
  return (
    <nav className={css.tabs} aria-label={label}>
      {tabs.map(({ text, ...link }) => (
        <Link key={text} {...link} className={css.tab} activeProps={{ 'data-active': '' }}
          activeOptions={{ exact: true }}>
          {text}
        </Link>
      ))}
    </nav>
  )
}
