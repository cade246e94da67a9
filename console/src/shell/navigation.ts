import type { Operation } from '../components/rights'

/** The screens of a project, in the order of the navigation. */
export interface Entry {
  text: string
  path: string // behind /projects/$project
  group: 'Data' | 'Application' | 'Operation'
  needs?: Operation // without the role for it there is nothing to see
}

export const entries: Entry[] = [
  { text: 'Tables', path: 'tables', group: 'Data' },
  { text: 'Diagram', path: 'diagram', group: 'Data' },
  { text: 'SQL', path: 'sql', group: 'Data', needs: 'runSQL' },
  { text: 'SQL functions', path: 'functions', group: 'Data' },
  { text: 'Extensions', path: 'extensions', group: 'Data' },
  { text: 'Migrations', path: 'migrations', group: 'Data' },
  { text: 'Users', path: 'users', group: 'Application', needs: 'listEndUsers' },
  { text: 'Edge functions', path: 'edge-functions', group: 'Application' },
  { text: 'Realtime', path: 'realtime', group: 'Application', needs: 'runSQL' },
  { text: 'Webhooks', path: 'webhooks', group: 'Application', needs: 'listWebhooks' },
  { text: 'Schedules', path: 'schedules', group: 'Application', needs: 'listSchedules' },
  { text: 'Queues', path: 'queues', group: 'Application', needs: 'runSQL' },
  { text: 'Files', path: 'files', group: 'Application' },
  { text: 'Forms', path: 'forms', group: 'Application' },
  { text: 'Mails', path: 'mails', group: 'Application', needs: 'listMails' },
  { text: 'Backups', path: 'backups', group: 'Operation' },
  { text: 'Requests', path: 'requests', group: 'Operation', needs: 'listRequests' },
  { text: 'Audit', path: 'audit', group: 'Operation', needs: 'listAudit' },
  { text: 'Advice', path: 'advice', group: 'Operation' },
  { text: 'Keys', path: 'keys', group: 'Operation', needs: 'listKeys' },
  { text: 'Settings', path: 'settings', group: 'Operation' },
]
