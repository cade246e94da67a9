/** The screens of a project, in the order of the navigation. */
export interface Entry {
  text: string
  path: string // behind /projects/$project
  group: 'Data' | 'Application' | 'Operation'
}

export const entries: Entry[] = [
  { text: 'Tables', path: 'tables', group: 'Data' },
  { text: 'Diagram', path: 'diagram', group: 'Data' },
  { text: 'SQL', path: 'sql', group: 'Data' },
  { text: 'Functions', path: 'functions', group: 'Data' },
  { text: 'Extensions', path: 'extensions', group: 'Data' },
  { text: 'Migrations', path: 'migrations', group: 'Data' },
  { text: 'Users', path: 'users', group: 'Application' },
  { text: 'Files', path: 'files', group: 'Application' },
  { text: 'Forms', path: 'forms', group: 'Application' },
  { text: 'Mails', path: 'mails', group: 'Application' },
  { text: 'Backups', path: 'backups', group: 'Operation' },
  { text: 'Requests', path: 'requests', group: 'Operation' },
  { text: 'Audit', path: 'audit', group: 'Operation' },
  { text: 'Advice', path: 'advice', group: 'Operation' },
  { text: 'Keys', path: 'keys', group: 'Operation' },
  { text: 'Settings', path: 'settings', group: 'Operation' },
]
