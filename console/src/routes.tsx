import {
  createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet, redirect,
} from '@tanstack/react-router'
import { currentUser, hasNoAdministrator, restore } from './api/session'
import { Failure } from './components/States'
import { NotFound } from './shell/NotFound'
import { Shell } from './shell/Shell'

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound })

/** Screens before sign-in. */
const open = (path: string, load: () => Promise<object>, name: string) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load as never, name as never) })

const app = createRoute({
  getParentRoute: () => root,
  id: 'app',
  component: Shell,
  errorComponent: ({ error, reset }) => <Failure error={error} retry={reset} />,
  beforeLoad: async ({ location }) => {
    if (currentUser() === null && !(await restore())) {
      throw redirect({ to: (hasNoAdministrator() ? '/sign-up' : '/sign-in') as string, search: { next: location.href } as never })
    }
  },
})

const screen = (path: string, load: () => Promise<object>, name: string) =>
  createRoute({ getParentRoute: () => app, path, component: lazyRouteComponent(load as never, name as never) })

const project = createRoute({ getParentRoute: () => app, path: 'projects/$project', component: Outlet })

const inside = (path: string, load: () => Promise<object>, name: string) =>
  createRoute({ getParentRoute: () => project, path, component: lazyRouteComponent(load as never, name as never) })

const access = () => import('./screens/access/Access')
const account = () => import('./screens/account/Account')
const organization = () => import('./screens/organization/Organization')
const admin = () => import('./screens/admin/Admin')
const structure = () => import('./screens/structure/Structure')

const tree = root.addChildren([
  open('sign-in', access, 'SignIn'),
  open('sign-up', access, 'SignUp'),
  open('forgotten', access, 'Forgotten'),
  app.addChildren([
    screen('/', () => import('./screens/projects/Projects'), 'Projects'),
    screen('account', account, 'Account'),
    screen('organizations/$organization', organization, 'Organization'),
    screen('admin/$section', admin, 'Admin'),
    project.addChildren([
      inside('/', () => import('./screens/home/Home'), 'Home'),
      inside('tables', () => import('./screens/tables/Tables'), 'Tables'),
      inside('tables/$table', () => import('./screens/rows/Rows'), 'Rows'),
      inside('tables/$table/structure', structure, 'Structure'),
      inside('enums', () => import('./screens/structure/Enums'), 'Enums'),
      inside('diagram', () => import('./screens/diagram/Diagram'), 'Diagram'),
      inside('sql', () => import('./screens/sql/SQL'), 'SQL'),
      inside('functions', () => import('./screens/functions/Functions'), 'Functions'),
      inside('extensions', () => import('./screens/extensions/Extensions'), 'Extensions'),
      inside('migrations', () => import('./screens/migrations/Migrations'), 'Migrations'),
      inside('edge-functions', () => import('./screens/edgefunctions/EdgeFunctions'), 'EdgeFunctions'),
      inside('edge-functions/$edgeFunction', () => import('./screens/edgefunctions/EdgeFunction'), 'EdgeFunction'),
      inside('users', () => import('./screens/endusers/EndUsers'), 'EndUsers'),
      inside('users/$user', () => import('./screens/endusers/EndUser'), 'EndUser'),
      inside('realtime', () => import('./screens/realtime/Realtime'), 'Realtime'),
      inside('webhooks', () => import('./screens/webhooks/Webhooks'), 'Webhooks'),
      inside('webhooks/$webhook', () => import('./screens/webhooks/Webhook'), 'Webhook'),
      inside('schedules', () => import('./screens/schedules/Schedules'), 'Schedules'),
      inside('schedules/$schedule', () => import('./screens/schedules/Schedule'), 'Schedule'),
      inside('queues', () => import('./screens/queues/Queues'), 'Queues'),
      inside('queues/$queue', () => import('./screens/queues/Queue'), 'Queue'),
      inside('files', () => import('./screens/files/Containers'), 'Containers'),
      inside('files/$container', () => import('./screens/files/Files'), 'Files'),
      inside('forms', () => import('./screens/forms/Forms'), 'Forms'),
      inside('forms/$form', () => import('./screens/forms/Form'), 'Form'),
      inside('mails', () => import('./screens/mails/Mails'), 'Mails'),
      inside('backups', () => import('./screens/backups/Backups'), 'Backups'),
      inside('requests', () => import('./screens/requests/Requests'), 'Requests'),
      inside('audit', () => import('./screens/audit/Audit'), 'Audit'),
      inside('advice', () => import('./screens/advice/Advice'), 'Advice'),
      inside('keys', () => import('./screens/keys/Keys'), 'Keys'),
      inside('settings', () => import('./screens/settings/Settings'), 'Settings'),
    ]),
  ]),
])

export const router = createRouter({
  routeTree: tree,
  basepath: '/console',
  defaultPreload: 'intent',
  scrollRestoration: true,
})
