package server

import (
	"context"
	"runtime"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/socle-dev/socle/internal/build"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/rest/session"
)

// gauge is a metric about this server's state, as of the scrape.
func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("socle_"+name, help, labels, nil)
}

// Metrics about this server's state. Jobs belong to the install: all servers report the same.
var (
	buildInfo = gauge("build_info", "Versions of Socle and Go; always 1.", "version", "go")

	poolConnections = gauge("database_connections", "Connections to the platform database.", "pool", "state")
	poolMax         = gauge("database_connections_max", "Maximum of connections to the platform database.", "pool")

	projectPools          = gauge("open_projects", "Projects with pools.")
	projectConnections    = gauge("project_connections", "Connections to the databases of projects.")
	projectConnectionsMax = gauge("project_connections_max", "Budget of connections to the databases of projects.")
	replicaFresh          = gauge("replica_fresh", "1 if the standby answers reads.", "host")
	replicaLag            = gauge("replica_lag_seconds", "Time since the standby was equal to the primary.", "host")
	replicaConnections    = gauge("replica_connections", "Connections to projects on the standby.", "host")
	projectWaiting        = gauge("project_connections_waiting", "Requests that wait for a connection.")

	watchdogAlive      = gauge("watchdog_alive", "1 if the watchdog has checked sessions recently.")
	watchdogTerminated = gauge("watchdog_terminated_sessions_total", "Sessions that the watchdog has terminated.")

	memoryBytes = gauge("memory_budget_bytes", "Memory in use by the bodies of requests or responses.", "budget")
	memoryMax   = gauge("memory_budget_bytes_max", "Budget of that memory.", "budget")

	cachedProjects = gauge("rows_cached_projects", "Projects whose catalogs and statements are cached.")
	cachedKeys     = gauge("rows_cached_keys", "API keys and settings of projects that are cached.")

	realtimeSockets = gauge("realtime_sockets", "WebSockets of applications.")

	realtimeChannels = gauge("realtime_channels", "Channels that WebSockets have joined.")

	webhookProjects   = gauge("webhook_projects", "Projects whose webhooks this server delivers.")
	webhookWaiting    = gauge("webhook_waiting_deliveries", "Deliveries of these that wait for an attempt.")
	webhookDeliveries = gauge("webhook_attempts_total", "Attempts of deliveries: delivered, failed and repeated, or given up.",
		"outcome")
	queueMessages  = gauge("queue_messages_total", "Messages that webhooks have taken from queues on this server.")
	scheduleRuns   = gauge("schedule_runs_total", "Runs of schedules on this server.", "outcome")
	outboxProjects = gauge("outbox_projects", "Projects that this server looks into for work that SQL has left.")
	outboxRuns     = gauge("outbox_runs_total", "Batches of such work: requests, messages, changed schedules.")
	outboxFailures = gauge("outbox_failures_total", "Looks and batches that failed.")

	functionProcesses = gauge("function_processes", "Processes of edge functions; blank ones wait for a function.", "state")
	functionCalls     = gauge("function_calls_total", "Calls of edge functions.")
	functionErrors    = gauge("function_errors_total", "Calls of edge functions without an answer, or with a status of 500 or above.")
	functionStarts    = gauge("function_cold_starts_total", "Processes of edge functions that were started.")
	functionCPU       = gauge("function_cpu_seconds_total", "Processor time of edge functions.")

	clusterServers  = gauge("cluster_servers", "Other servers of the install that this one reaches.")
	clusterSent     = gauge("cluster_sent_messages_total", "Messages to other servers.")
	clusterReceived = gauge("cluster_received_messages_total", "Messages of other servers.")
	clusterDropped  = gauge("cluster_dropped_messages_total",
		"Messages dropped because another server is slow or out of reach, or a project sends too many.")

	storageFree = gauge("storage_free_bytes", "Free space of the storage, if it is a folder.")
	storageSize = gauge("storage_size_bytes", "Size of the storage's file system, if it is a folder.")

	droppedSpans = gauge("trace_dropped_spans_total", "Spans that the collector did not take.")

	jobs      = gauge("jobs", "Jobs of the install; failed ones of the last 24 hours.", "state")
	oldestJob = gauge("jobs_oldest_seconds", "Waiting time of the oldest job that could run.")

	certificateExpiry = gauge("certificate_expiry_timestamp_seconds", "End of the certificate's validity; 0 without one.")
)

var stateMetrics = []*prometheus.Desc{
	buildInfo, poolConnections, poolMax, projectPools, projectConnections, projectConnectionsMax, projectWaiting,
	replicaFresh, replicaLag, replicaConnections,
	watchdogAlive, watchdogTerminated, memoryBytes, memoryMax, cachedProjects, cachedKeys,
	realtimeSockets, realtimeChannels, webhookProjects, webhookWaiting, webhookDeliveries, queueMessages, scheduleRuns,
	outboxProjects, outboxRuns, outboxFailures,
	functionProcesses, functionCalls, functionErrors, functionStarts, functionCPU,
	clusterServers, clusterSent, clusterReceived, clusterDropped,
	storageFree, storageSize, droppedSpans,
	jobs, oldestJob, certificateExpiry,
}

// state collects the state metrics.
type state struct{ *Server }

// watchState registers the state metrics.
func (m *metrics) watchState(s *Server) {
	if m.registry != nil {
		m.registry.MustRegister(state{s}, pools{s})
	}
}

// Describe sends the metrics' descriptors.
func (state) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range stateMetrics {
		descs <- d
	}
}

// Collect sends the values. It omits those that can't be read.
func (s state) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}

	send(buildInfo, 1, build.Version(), runtime.Version())

	for name, pool := range map[string]*pgxpool.Pool{"platform": s.database.Pool, "queue": s.database.QueuePool} {
		stat := pool.Stat()
		send(poolConnections, float64(stat.AcquiredConns()), name, "acquired")
		send(poolConnections, float64(stat.IdleConns()), name, "idle")
		send(poolMax, float64(stat.MaxConns()), name)
	}

	projects := s.registry.Stats()
	send(projectPools, float64(projects.Projects))
	send(projectConnections, float64(projects.Connections))
	send(projectConnectionsMax, float64(projects.MaxConnections))
	send(projectWaiting, float64(projects.Waiting))
	s.collectReplicas(send)
	send(watchdogAlive, boolean(projects.WatchdogAlive))
	to <- prometheus.MustNewConstMetric(watchdogTerminated, prometheus.CounterValue, float64(projects.Terminated))

	send(memoryBytes, float64(s.bodies.Stats().InUse), "requests")
	send(memoryMax, rest.BodyPoolSize, "requests")
	send(memoryBytes, float64(s.responses.InUse()), "responses")
	send(memoryMax, session.BudgetSize, "responses")

	stats := s.gateway.Stats()
	send(cachedProjects, float64(stats.Projects))
	send(cachedKeys, float64(stats.Lookups))
	send(realtimeSockets, float64(s.realtime.Sockets()))

	send(realtimeChannels, float64(s.hub.Members()))
	s.collectWork(to, send)
	functions := s.functions.Stats()
	send(functionProcesses, float64(functions.Processes), "running")
	send(functionProcesses, float64(functions.Blank), "blank")
	for desc, count := range map[*prometheus.Desc]float64{functionCalls: float64(functions.Calls),
		functionErrors: float64(functions.Errors), functionStarts: float64(functions.ColdStarts),
		functionCPU: functions.CPU.Seconds()} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, count)
	}

	cluster := s.bus.Stats()
	send(clusterServers, float64(cluster.Servers))
	for desc, count := range map[*prometheus.Desc]int64{clusterSent: cluster.Sent, clusterReceived: cluster.Received,
		clusterDropped: cluster.Dropped + s.hub.Refused()} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(count))
	}

	if free, size, err := s.blobs.Space(); err == nil && size > 0 {
		send(storageFree, float64(free))
		send(storageSize, float64(size))
	}

	if s.certificate != nil {
		expires := s.certificate.ExpiresAt()
		if expires.IsZero() {
			send(certificateExpiry, 0)
		} else {
			send(certificateExpiry, seconds(&expires))
		}
	}

	to <- prometheus.MustNewConstMetric(droppedSpans, prometheus.CounterValue, float64(s.telemetry.LostSpans()))
	s.collectJobs(send)
}

// collectReplicas sends the metrics of standbys.
func (s state) collectReplicas(send func(*prometheus.Desc, float64, ...string)) {
	if s.replicas == nil {
		return
	}

	for _, r := range s.replicas.States() {
		send(replicaFresh, boolean(r.Fresh), r.Host)
		send(replicaConnections, float64(r.Connections), r.Host)
		if r.Fresh {
			send(replicaLag, r.Lag.Seconds(), r.Host)
		}
	}
}

// collectWork sends the metrics of webhooks, schedules and the outbox.
func (s state) collectWork(to chan<- prometheus.Metric, send func(*prometheus.Desc, float64, ...string)) {
	count := func(d *prometheus.Desc, value int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}

	webhooks := s.services.Webhooks.Stats()
	send(webhookProjects, float64(webhooks.Projects))
	send(webhookWaiting, float64(webhooks.Waiting))
	count(webhookDeliveries, webhooks.Delivered, "delivered")
	count(webhookDeliveries, webhooks.Failed, "failed")
	count(webhookDeliveries, webhooks.Dead, "dead")
	count(queueMessages, webhooks.Messages)

	succeeded, failed := s.services.Schedules.RunCounts()
	count(scheduleRuns, succeeded, "succeeded")
	count(scheduleRuns, failed, "failed")

	outbox := s.outbox.Stats()
	send(outboxProjects, float64(outbox.Projects))
	count(outboxRuns, outbox.Runs)
	count(outboxFailures, outbox.Failures)
}

func (s state) collectJobs(send func(*prometheus.Desc, float64, ...string)) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeQueryTimeout)
	defer cancel()

	stats, err := s.services.Queue.Stats(ctx)
	if err != nil {
		s.log.Warn("could not read metrics of jobs", "error", err)
		return
	}

	send(jobs, float64(stats.Waiting), "waiting")
	send(jobs, float64(stats.Running), "running")
	send(jobs, float64(stats.Failed), "failed")
	send(oldestJob, stats.Oldest.Seconds())
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
