// The screens of a project by name, with what follows the project's address.
export const screens = {
	home: '', tables: 'tables', diagram: 'diagram', sql: 'sql', enums: 'enums', functions: 'functions', extensions: 'extensions', migrations: 'migrations',
	users: 'users', realtime: 'realtime', changes: 'realtime?tab=log', channels: 'realtime?tab=now', edgefunctions: 'edge-functions', edgelog: 'edge-functions?tab=log', edgesecrets: 'edge-functions?tab=secrets', webhooks: 'webhooks', queues: 'queues', schedules: 'schedules', files: 'files', forms: 'forms', mails: 'mails', backups: 'backups', requests: 'requests', audit: 'audit', advice: 'advice',
	keys: 'keys', tokens: 'keys?tab=jwt', s3keys: 'keys?tab=s3', credentials: 'keys?tab=database', vault: 'keys?tab=vault', settings: 'settings',
	rowssettings: 'settings?tab=rest', authsettings: 'settings?tab=auth', quota: 'settings?tab=quota', danger: 'settings?tab=danger',
}
