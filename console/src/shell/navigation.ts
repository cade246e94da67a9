import { texts } from '#texts/shell'
import type { Operation } from '../components/rights'

/** The groups of screens, in the order of the navigation. */
export const groups = { data: texts.data, application: texts.application, operation: texts.operation }

/** The screens of a project, in the order of the navigation. */
export interface Entry {
  text: string
  path: string // behind /projects/$project
  group: keyof typeof groups
  needs?: Operation // without the role for it there is nothing to see
}

export const entries: Entry[] = [
  { text: texts.tables, path: 'tables', group: 'data' },
  { text: texts.diagram, path: 'diagram', group: 'data' },
  { text: texts.sql, path: 'sql', group: 'data', needs: 'runSQL' },
  { text: texts.sqlFunctions, path: 'functions', group: 'data' },
  { text: texts.extensions, path: 'extensions', group: 'data' },
  { text: texts.migrations, path: 'migrations', group: 'data' },
  { text: texts.users, path: 'users', group: 'application', needs: 'listEndUsers' },
  { text: texts.edgeFunctions, path: 'edge-functions', group: 'application' },
  { text: texts.realtime, path: 'realtime', group: 'application', needs: 'runSQL' },
  { text: texts.webhooks, path: 'webhooks', group: 'application', needs: 'listWebhooks' },
  { text: texts.schedules, path: 'schedules', group: 'application', needs: 'listSchedules' },
  { text: texts.queues, path: 'queues', group: 'application', needs: 'runSQL' },
  { text: texts.files, path: 'files', group: 'application' },
  { text: texts.forms, path: 'forms', group: 'application' },
  { text: texts.mails, path: 'mails', group: 'application', needs: 'listMails' },
  { text: texts.backups, path: 'backups', group: 'operation' },
  { text: texts.requests, path: 'requests', group: 'operation', needs: 'listRequests' },
  { text: texts.audit, path: 'audit', group: 'operation', needs: 'listAudit' },
  { text: texts.advice, path: 'advice', group: 'operation' },
  { text: texts.keys, path: 'keys', group: 'operation', needs: 'listKeys' },
  { text: texts.settings, path: 'settings', group: 'operation' },
]
