// Package projectdb holds the project handles: the connection pools to a project's database, the
// client sessions, the gate that holds requests while the database is swapped, and what a server
// knows about the size. It also has the schema of these databases.
//
// Package pgcluster owns the PostgreSQL server, and package lifecycle creates, pauses, swaps and
// removes databases. A database's contents belong to packages schema, object, form and enduser.
//
// # States of a handle
//
//	            Registry.Open
//	                 │
//	                 ▼        HoldRequests, or another server's swap
//	unused ◄──── in use ─────────────────────────────────────► held
//	  │  idle pools  ▲  ▲                                         │
//	  │  are closed  │  └─────────────────────────────────────────┘
//	  └──────────────┘        gate open; pools reset: they lead to the old database
//	     next request
//	                 │ Forget: the database is dropped
//	                 ▼
//	                gone      pools are closed for good
//
// A handle is valid in each of these states. In use, it opens a pool for each [poolKind] on demand,
// and each connection takes a slot in the cluster's budget. Held, new connections and sessions wait
// at the gate, pooled connections are discarded at their next use, and client sessions end. The
// handle for a paused or deleted project stays in use: the database refuses connections, with
// [ErrClosed] for the platform's login.
package projectdb
