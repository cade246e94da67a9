// Package schedule owns the schedules of projects: jobs by the clock, which run SQL or call an
// endpoint, and the history of their runs.
//
// A job is a row of cron.job in the project's database, by whichever way it is made: SQL as for
// pg_cron, the API, a migration. Servers do not poll projects. The platform database has one due
// time per project:
//
//	platform.schedule_times ── take ── look into the project ── run ── next due time
//
// A look plans and claims in one transaction in the project's database, so that each run happens
// once, whichever servers look. A run on the owner's login belongs to its session: the next look
// fails a run whose session is gone. Package timetable computes times, package outbox finds jobs
// that SQL has changed.
//
// # States of a run
//
//	on request ─► queued ─┐
//	                      ├─ look claims ─► starting ─► running ─► succeeded
//	due time ─────────────┤                    │           │
//	                      │                    └───────────┴─────► failed: an error, its timeout,
//	                      │                                        or its session is gone
//	                      ├─ look: the run before has not ended ─► skipped, or due until it has
//	                      └─ look: more than an hour late ───────► missed
//
// The call of an endpoint has no session and stays starting until it ends. If its server is gone,
// a look fails it after the timeout.
package schedule
