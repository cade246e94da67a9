package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/socle-dev/socle/internal/backup"
)

// scrapeQueryTimeout limits the query behind a scrape.
const scrapeQueryTimeout = 3 * time.Second

// Backup metrics for each project with a schedule. All servers report the same values, as of the
// scrape.
var (
	nextBackup = prometheus.NewDesc("socle_backup_next_timestamp_seconds",
		"Time of a project's next scheduled backup; in the past if overdue.", []string{"project"}, nil)
	lastCompleted = prometheus.NewDesc("socle_backup_last_completed_timestamp_seconds",
		"Time of a project's newest completed backup; 0 without one.", []string{"project"}, nil)
	lastProven = prometheus.NewDesc("socle_backup_last_proven_timestamp_seconds",
		"Time of a project's last successful backup proof; 0 without one.",
		[]string{"project"}, nil)
)

// backupAges collects the backup metrics.
type backupAges struct {
	backups *backup.Service
	log     *slog.Logger
}

// watchBackups registers the backup metrics.
func (m *metrics) watchBackups(backups *backup.Service, log *slog.Logger) {
	if m.registry != nil {
		m.registry.MustRegister(backupAges{backups, log})
	}
}

// Describe sends the backup metrics' descriptors.
func (backupAges) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{nextBackup, lastCompleted, lastProven} {
		descs <- d
	}
}

// Collect queries the backup ages. If the database does not answer, it leaves them out and the
// other metrics remain.
func (b backupAges) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeQueryTimeout)
	defer cancel()

	ages, err := b.backups.Ages(ctx)
	if err != nil {
		b.log.Warn("could not read backup metrics", "error", err)
		return
	}

	for _, a := range ages {
		project := a.ProjectUUID.String()
		for desc, at := range map[*prometheus.Desc]*time.Time{
			nextBackup:    &a.NextRunAt,
			lastCompleted: a.CompletedAt,
			lastProven:    a.ProvenAt,
		} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, seconds(at), project)
		}
	}
}

// seconds returns a time as a Prometheus timestamp, 0 for nil.
func seconds(t *time.Time) float64 {
	if t == nil {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
