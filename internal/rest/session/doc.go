// Package session runs requests' statements in PostgreSQL.
//
// An [Execution] is one transaction on a pooled connection and, without a check, one round trip:
// the package speaks PostgreSQL's protocol itself. It caches prepared statements per connection and
// cancels the execution when its client disconnects or its deadline passes. The [Result] holds a
// short body, and streams a long one while it arrives.
//
// Package actor has the transaction settings and the session reset after user code. Package plan
// builds the statements, package rest knows requests and responses.
//
// # States of an execution
//
//	          ┌─ stale plan: invalidate, once ─┐
//	          ▼                                │
//	acquire ─▶ send ─▶ replies ────────────────┴─▶ check ─▶ commit or rollback, reset ─▶ release
//	   ▲        │        │  │                                        │
//	   │        │        │  └─ long body: suspended ─ Stream ─▶ resume (reset) ─▶ release
//	   │        │        │                               └─ client gone: abandon ─▶ discard
//	   │        ▼        ▼                                           ▼
//	   └── dead connection, nothing has run          failure: reset ─▶ release, or discard
//
// Without a check, commit and reset are sent with the statement. A connection in an unknown state
// is discarded, not released. If it ends between COMMIT and its reply, the outcome is unknown.
package session
