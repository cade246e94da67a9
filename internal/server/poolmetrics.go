package server

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/statement"
)

// Metrics about the pools that accounts share. The unit of a pool is its own: places, bytes, KiB.
var (
	poolCapacity = gauge("share_capacity", "Units of a pool that accounts share.", "pool")
	poolInUse    = gauge("share_in_use", "Units of the pool in use.", "pool")
	poolWaiting  = gauge("share_waiting", "Callers that wait for units of the pool.", "pool")
	poolRefused  = gauge("share_refused_total", "Callers that got no units of the pool.", "pool")
	poolRevoked  = gauge("share_revoked_total", "Units taken back from an account for another one.", "pool")
)

// pools collects the metrics of the pools that accounts share. They have no label by tenant.
type pools struct{ *Server }

// sharedPools returns the server's pools.
func (s *Server) sharedPools() []*fair.Pool {
	return slices.Concat([]*fair.Pool{s.bodies, s.database.places}, s.responses.Pools(), statement.Pools(),
		s.registry.Pools(), s.proxy.Pools(), s.services.Queue.Pools(), s.services.Accounts.Passwords.Pools(),
		s.internet.Pools(), s.requestsBySQL.Pools(), s.outbox.Pools(), s.services.Webhooks.Pools(),
		s.services.Schedules.Pools(), s.services.Lifecycle.Pools(), s.services.Migrations.Pools(), s.bus.Pools(),
		s.realtime.Pools(), s.hub.Pools(), s.events.Pools(), s.functions.Pools(), s.services.Requests.Pools())
}

// Describe sends the metrics' descriptors.
func (pools) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolCapacity, poolInUse, poolWaiting, poolRefused, poolRevoked} {
		descs <- d
	}
}

// Collect sends the values. Pools with the same name, such as those of two clusters, are one.
func (p pools) Collect(to chan<- prometheus.Metric) {
	all := map[string]fair.Stats{}
	for _, pool := range p.sharedPools() {
		s := pool.Stats()
		sum := all[s.Name]
		sum.Capacity, sum.InUse, sum.Waiting = sum.Capacity+s.Capacity, sum.InUse+s.InUse, sum.Waiting+s.Waiting
		sum.Refused, sum.Revoked = sum.Refused+s.Refused, sum.Revoked+s.Revoked
		all[s.Name] = sum
	}

	send := func(d *prometheus.Desc, kind prometheus.ValueType, value int64, pool string) {
		to <- prometheus.MustNewConstMetric(d, kind, float64(value), pool)
	}
	for name, s := range all {
		send(poolCapacity, prometheus.GaugeValue, s.Capacity, name)
		send(poolInUse, prometheus.GaugeValue, s.InUse, name)
		send(poolWaiting, prometheus.GaugeValue, int64(s.Waiting), name)
		send(poolRefused, prometheus.CounterValue, s.Refused, name)
		send(poolRevoked, prometheus.CounterValue, s.Revoked, name)
	}
}
