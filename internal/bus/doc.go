// Package bus carries messages between the servers of an install: who the other servers are, and
// subjects to which they publish and subscribe. It knows no contents; package realtime sends the
// broadcasts and presences of channels over it.
//
// # Transport
//
// NATS transports the messages. A server alone starts none and listens nowhere. As soon as another
// server registers in the platform database, each runs NATS inside its process, and they connect
// to each other by routes over TLS. The key and the certificate of both sides derive from the
// install's secret, so that a route proves the membership in the install. With [Config.NATSURL],
// servers are clients of an existing NATS instead. It and its other clients see neither contents
// nor names: messages are sealed under a key of the install.
//
//	platform.servers ── addresses
//	                      |
//	[Bus.Publish] ─ queue ─ NATS ═ route ═ NATS ─ inbox ─ [Handler]
//	                  |                             |
//	                  └──────── ping, pong ─────────┘
//
// # Contract
//
// A message reaches each subscribed server at most once. Messages of one server arrive in their
// order, whatever their subjects. They are lost while servers can't reach each other.
//
// # Flow
//
// A server pings the others behind what it has sent. A pong says that everything before the ping
// was handled. Until then the bytes take a share of a pool, so that neither a slow server nor a
// tenant fills the memory: what finds no share is dropped and counted. A server that does not
// answer for [lostAfter] is lost, and nobody waits for it any longer.
//
// The same pongs are a [Bus.Barrier]: interest in a subject travels in order as well, so a barrier
// behind [Bus.Subscribe] ends when every other server knows of the subscription.
package bus
