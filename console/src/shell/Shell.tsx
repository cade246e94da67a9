import { useEffect, useState, useSyncExternalStore } from 'react'
import { Link, Outlet, useLocation, useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, read } from '../api/client'
import { currentUser, signOut, subscribe } from '../api/session'
import { IconButton } from '../components/Button'
import { Menu } from '../components/Menu'
import { queries } from '../queries'
import { entries } from './navigation'
import { Palette } from './Palette'
import { RequestPanel } from './RequestPanel'
import { setTheme, theme } from './theme'
import css from './Shell.module.css'

const administrator = 1 // role of the user's own account, as in the API

/** The frame around all screens after sign-in. */
export function Shell() {
  const user = useSyncExternalStore(subscribe, currentUser)
  const { project } = useParams({ strict: false }) as { project?: string }
  const navigate = useNavigate()
  const { pathname } = useLocation()
  const [palette, setPalette] = useState(false)
  const [requests, setRequests] = useState(false)
  const [menu, setMenu] = useState(false)

  useEffect(() => {
    if (user === null) void navigate({ to: '/sign-in' as string })
  }, [user, navigate])

  useEffect(() => setMenu(false), [pathname])

  useEffect(() => {
    const open = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
        e.preventDefault()
        setPalette(true)
      }
    }
    addEventListener('keydown', open)
    return () => removeEventListener('keydown', open)
  }, [])

  if (user === null) return null

  return (
    <div className={css.shell}>
      <a className={css.skip} href="#content">
        Skip to the content
      </a>
      <header className={css.bar}>
        {project !== undefined && (
          <IconButton className={css.menu ?? ''} label="Navigation" aria-expanded={menu} onClick={() => setMenu(!menu)}>
            ☰
          </IconButton>
        )}
        <Link to="/" className={css.brand}>
          Socle
        </Link>
        {project !== undefined && <ProjectName project={project} />}
        <span className={css.space} />
        <button type="button" className={css.search} onClick={() => setPalette(true)}>
          Go to… <kbd>Ctrl K</kbd>
        </button>
        <button type="button" className={css.search} onClick={() => setRequests(true)}>
          Requests
        </button>
        <Menu label={`Account of ${user.username}`} trigger={user.username} items={[
          { text: 'Account', onSelect: () => void navigate({ to: '/account' as string }) },
          { text: 'Organization', onSelect: () => void navigate({ to: `/organizations/${user.organizationUuid}` }) },
          ...(user.roleId === administrator
            ? [{ text: 'Administration', onSelect: () => void navigate({ to: '/admin/users' as string }) }]
            : []),
          { text: `Theme: ${theme()}`, onSelect: () => setTheme(nextTheme[theme()]) },
          { text: 'Sign out', onSelect: () => void signOut().finally(() => queries.clear()) },
        ]} />
      </header>
      <div className={css.body}>
        {project !== undefined && (
          <nav className={`${css.side} ${menu ? css.sideOpen : ''}`} aria-label="Project">
            <NavLink project={project} path="" text="Home" />
            {(['Data', 'Application', 'Operation'] as const).map((group) => (
              <div key={group}>
                <h2 className={css.group}>{group}</h2>
                {entries.filter((e) => e.group === group).map((e) => (
                  <NavLink key={e.path} project={project} path={e.path} text={e.text} />
                ))}
              </div>
            ))}
          </nav>
        )}
        <main id="content" className={css.main} tabIndex={-1}>
          <Outlet />
        </main>
      </div>
      <Palette open={palette} onClose={() => setPalette(false)} project={project} />
      <RequestPanel open={requests} onClose={() => setRequests(false)} />
    </div>
  )
}

const nextTheme = { system: 'light', light: 'dark', dark: 'system' } as const

function NavLink({ project, path, text }: { project: string; path: string; text: string }) {
  return (
    <Link to={`/projects/${project}/${path}` as string} className={css.link} activeProps={{ 'data-active': '' }}
      activeOptions={{ exact: path === '' }}>
      {text}
    </Link>
  )
}

function ProjectName({ project }: { project: string }) {
  const { data } = useQuery({
    queryKey: ['project', project],
    queryFn: () => read(api.GET('/projects/{projectUUID}', { params: { path: { projectUUID: project } } })),
  })

  return (
    <>
      <span className={css.slash}>/</span>
      <Link to={`/projects/${project}` as string} className={css.project}>
        {data?.content.name ?? '…'}
      </Link>
      {data?.content.status === 'paused' && <span className={css.paused}>paused</span>}
    </>
  )
}
