// Package realtime owns the channels of projects in memory: rooms, their members, broadcasts and
// presence. It knows no protocol and no database.
//
//	Hub ── project ── room ── Member ── Subscriber
//	                   |
//	                   presence: entries by key, pending diff
//
// A [Hub] has the rooms of one server. Members on other servers are reached by a [Bus] between
// hubs, behind [Hub.Send] and [Member.Send]. Each server owns its members' presences, and has a
// replica of those of others.
//
// Each project has one lock, so that a busy project delays no other. Messages of a room reach all
// its members on a server in one order, and those of one sender all members in theirs.
package realtime
