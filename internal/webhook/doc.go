// Package webhook tells endpoints of a project what changed in it: rows of tables, and the facts of
// the platform. It owns the webhooks, their deliveries and attempts, and who delivers for a
// project. Package event has the log that it reads, package outbound the requests.
//
// # From a change to an endpoint
//
//	event log ── collect ──► socle.webhook_deliveries ── send ──► endpoint
//	               │                    ▲                  │
//	               └─ cursor moves in   │                  └─ outcome: delivered, dead, or
//	                  the statement     └──────────────────── pending until its next attempt
//	                  that inserts
//
// The log is the queue: a webhook has a bounded number of pending deliveries, and its cursor waits
// until there is room. A cursor that the log has left behind becomes an event that says so.
//
// # Servers
//
// One server delivers for a project, by a lease in platform.webhook_projects. Two that both believe
// to have it, since one was suspended, do no harm: the cursor moves by compare and set, an outcome
// is recorded once, and an endpoint can get an event twice at any time.
package webhook
