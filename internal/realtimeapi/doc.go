// Package realtimeapi serves the channels of projects by the Supabase Realtime contract, so that
// its clients work unchanged: Phoenix messages over a WebSocket, and broadcasts over HTTP.
//
// Package realtime has the rooms, package gateway finds a request's project and verifies keys and
// tokens. Changes of rows and the policies of private channels come through [Changes] and
// [Authorizer].
//
//	request ── tenant ── socket ── channel ── realtime.Member
//	           |         |         |
//	           |         outbox    follower of changes
//	           checks every few seconds that project, keys and tokens are still valid
//
// # Goroutines
//
// A socket's handler reads and serves its messages one by one. A writer runs while frames wait in
// the outbox. A channel with changes has one goroutine. So an idle socket has one goroutine.
package realtimeapi
