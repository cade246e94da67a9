import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Link, Outlet, useLocation, useMatches, useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/shell'
import { api, read } from '../api/client'
import { currentUser, hasSessionEnded, signOut, subscribe } from '../api/session'
import { IconButton } from '../components/Button'
import { Menu } from '../components/Menu'
import { Guarded } from '../components/Guarded'
import { Page } from '../components/Page'
import { HeldRole, refusalOf } from '../components/rights'
import { roleName, roles } from '../components/Roles'
import { queries } from '../queries'
import { entries, groups } from './navigation'
import { Palette } from './Palette'
import { RequestPanel } from './RequestPanel'
import { SignInAgain } from './SignInAgain'
import { setTheme, theme } from './theme'
import css from './Shell.module.css'

/** The frame around all screens after sign-in. */
export function Shell() {
  const signedIn = useSyncExternalStore(subscribe, currentUser)
  const last = useRef(signedIn)
  if (signedIn !== null) last.current = signedIn
  const user = signedIn ?? (hasSessionEnded() ? last.current : null)
  const { project } = useParams({ strict: false }) as { project?: string }
  const navigate = useNavigate()
  const { pathname } = useLocation()
  const [palette, setPalette] = useState(false)
  const [requests, setRequests] = useState(false)
  const [menu, setMenu] = useState(false)
  const held = useHeldRole(project)

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

  function leave() {
    void signOut().finally(() => {
      queries.clear()
      void navigate({ to: '/sign-in' as string })
    })
  }

  return (
    <div className={css.shell}>
      <a className={css.skip} href="#content">
        {texts.skipToTheContent}
      </a>
      <header className={css.bar}>
        {project !== undefined && (
          <IconButton className={css.menu ?? ''} label={texts.navigation} aria-expanded={menu} onClick={() => setMenu(!menu)}>
            ☰
          </IconButton>
        )}
        <Link to="/" className={css.brand}>
          {texts.socle}
        </Link>
        {project !== undefined && <ProjectName project={project} held={held} />}
        <span className={css.space} />
        <button type="button" className={css.search} onClick={() => setPalette(true)}>
          {texts.goToKbd(<kbd>Ctrl K</kbd>)}
        </button>
        <button type="button" className={css.search} onClick={() => setRequests(true)}>
          {texts.requests}
        </button>
        <Menu label={texts.accountOfUsername(user.username)} trigger={user.username} items={[
          { text: texts.account, onSelect: () => void navigate({ to: '/account' as string }) },
          { text: texts.organization, onSelect: () => void navigate({ to: `/organizations/${user.organizationUuid}` }) },
          ...(user.roleId === roles.administrator
            ? [{ text: texts.administration, onSelect: () => void navigate({ to: '/admin/users' as string }) }]
            : []),
          { text: texts.theme(theme()), onSelect: () => setTheme(nextTheme[theme()]) },
          { text: texts.signOut, onSelect: leave },
        ]} />
      </header>
      <div className={css.body}>
        {project !== undefined && (
          <nav className={`${css.side} ${menu ? css.sideOpen : ''}`} aria-label={texts.project}>
            <NavLink project={project} path="" text={texts.home} />
            {(Object.keys(groups) as (keyof typeof groups)[]).map((group) => (
              <div key={group}>
                <h2 className={css.group}>{groups[group]}</h2>
                {entries.filter((e) => e.group === group && refusalOf(e.needs, held) === undefined).map((e) => (
                  <NavLink key={e.path} project={project} path={e.path} text={e.text} />
                ))}
              </div>
            ))}
          </nav>
        )}
        <main id="content" className={css.main} tabIndex={-1}>
          <HeldRole value={held}>
            <Screen project={project} held={held} />
          </HeldRole>
        </main>
      </div>
      <Palette open={palette} onClose={() => setPalette(false)} project={project} held={held} />
      {signedIn === null && <SignInAgain user={user} onLeave={leave} />}
      <RequestPanel open={requests} onClose={() => setRequests(false)} />
    </div>
  )
}

/**
 * The screen of the address, or why the user's role has nothing to see there. It asks nothing before that is known. The path is
 * that of the screen that Outlet has: the address changes earlier, while the next screen loads.
 */
function Screen({ project, held }: { project: string | undefined; held: number | undefined }) {
  const pathname = useMatches({ select: (matches) => matches.at(-1)?.pathname ?? '' })
  const { isError } = useProjectOf(project)
  const path = /\/projects\/[^/]+\/([^/]+)/.exec(pathname)?.[1]
  const entry = project === undefined ? undefined : entries.find((e) => e.path === path)
  if (entry?.needs === undefined || isError) return <Outlet />

  return refusalOf(entry.needs, held) === undefined
    ? <Guarded needs={entry.needs}><Outlet /></Guarded>
    : <Page title={entry.text}><Guarded needs={entry.needs}>{null}</Guarded></Page>
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

function useProjectOf(project: string | undefined) {
  return useQuery({
    queryKey: ['project', project],
    enabled: project !== undefined,
    queryFn: () => read(api.GET('/projects/{projectUUID}', { params: { path: { projectUUID: project ?? '' } } })),
  })
}

/** The user's role in the organization of a project; undefined while it is not known. */
function useHeldRole(project: string | undefined): number | undefined {
  const { data } = useProjectOf(project)
  const user = currentUser()
  const organization = data?.content.organizationUuid
  const isOwn = user?.organizationUuid === organization || user?.roleId === roles.administrator
  const membership = useQuery({
    queryKey: ['organization', organization],
    enabled: organization !== undefined && !isOwn,
    queryFn: () => read(api.GET('/organizations/{organizationUUID}', {
      params: { path: { organizationUUID: organization ?? '' } },
    })),
  })

  return isOwn ? user?.roleId : membership.data?.content.roleId
}

function ProjectName({ project, held }: { project: string; held: number | undefined }) {
  const { data } = useProjectOf(project)

  return (
    <>
      <span className={css.slash}>/</span>
      <Link to={`/projects/${project}` as string} className={css.project}>
        {data?.content.name ?? '…'}
      </Link>
      {data?.content.status === 'paused' && <span className={css.paused}>{texts.paused}</span>}
      {held !== undefined && held > roles.admin && (
        <span className={css.role} title={texts.yourRoleInTheProject}>{roleName(held)}</span>
      )}
    </>
  )
}
