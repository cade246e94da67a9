package instance

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/operation"
)

func (s *Server) registerHealth(p *operation.Pipeline) {
	operation.Handle(p, listParts, s.listParts, nil)
}

// Component health.
const (
	healthy  = "ok"
	degraded = "degraded"
	down     = "down"
)

// Thresholds for the status degraded.
const (
	maxDatabaseLatency = time.Second
	maxQueueWait       = 10 * time.Minute
	minFreeBytes       = 1 << 30 // bytes
	maxSigningKeyAge   = 365 * 24 * time.Hour
	checkTimeout       = 3 * time.Second // limit per check
)

// Part is the health of an instance component.
type Part struct {
	Name    string           `json:"name"`
	Status  string           `json:"status" enum:"ok,degraded,down"`
	Detail  string           `json:"detail" doc:"One sentence for a person."`
	Figures map[string]int64 `json:"figures" doc:"The figures of the sentence, for programs: bytes, seconds, microseconds, numbers of jobs."`
}

type partsMetadata struct {
	Status string `json:"status" enum:"ok,degraded,down" doc:"The worst status of all components."`
}

var listParts = operation.Operation{
	ID: "listParts", Method: "GET", Path: "/health/parts", Summary: "Get component health",
	Access: operation.Administrator, Errors: []int{401, 403, 500},
	Notes: "Monitoring uses `/healthz` and `/readyz`, which need no token. The server's log has the reason why a " +
		"component is down.",
}

func (s *Server) listParts(ctx context.Context, _ *struct{}) (operation.Answer[[]Part, partsMetadata], error) {
	checks := []struct {
		name  string
		check func(context.Context) (Part, error)
	}{
		{"database", s.databaseHealth}, {"queue", s.queueHealth}, {"storage", s.storageHealth}, {"mail", s.mailHealth},
		{"signingKeys", s.keysHealth},
	}

	parts := make([]Part, len(checks))

	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()

			part, err := c.check(ctx)
			if err != nil {
				s.Log.Warn("component is down", slog.String("part", c.name), slog.Any("error", err))

				part = Part{
					Status:  down,
					Detail:  "The check failed; see the server's log.",
					Figures: map[string]int64{},
				}
			}

			part.Name = c.name
			parts[i] = part
		})
	}

	wg.Wait()
	return operation.WithMetadata(parts, partsMetadata{worst(parts)}), nil
}

func worst(parts []Part) string {
	status := healthy
	for _, p := range parts {
		if p.Status == down || status == healthy {
			status = p.Status
		}
	}

	return status
}

// newPart returns a healthy component, or a degraded one if fine is false.
func newPart(ok bool, figures map[string]int64, format string, args ...any) Part {
	p := Part{Status: healthy, Detail: fmt.Sprintf(format, args...), Figures: figures}
	if !ok {
		p.Status = degraded
	}

	return p
}

func (s *Server) databaseHealth(ctx context.Context) (Part, error) {
	version, latency, err := s.Platform.ServerVersion(ctx)
	return newPart(latency < maxDatabaseLatency, map[string]int64{"latencyMicroseconds": latency.Microseconds()},
		"PostgreSQL %s answers in %s.", version, latency.Round(10*time.Microsecond)), err
}

func (s *Server) queueHealth(ctx context.Context) (Part, error) {
	c, err := s.Queue.Stats(ctx)
	return newPart(c.Failed == 0 && c.Oldest < maxQueueWait,
		map[string]int64{
			"waiting": c.Waiting, "running": c.Running, "failed": c.Failed, "oldestSeconds": int64(c.Oldest.Seconds()),
		},
		"%d jobs are waiting, %d are running, and %d failed in the last 24 hours.", c.Waiting, c.Running, c.Failed), err
}

func (s *Server) storageHealth(ctx context.Context) (Part, error) {
	if err := s.Blobs.Check(ctx); err != nil {
		return Part{}, err
	}

	free, total, err := s.Blobs.Space()
	if err == nil && total == 0 {
		return newPart(true, map[string]int64{}, "The storage service accepts files."), nil
	}

	return newPart(free >= minFreeBytes, map[string]int64{"freeBytes": free, "totalBytes": total},
		"The storage folder accepts files and has %.1f GiB free.", float64(free)/(1<<30)), err
}

func (s *Server) mailHealth(context.Context) (Part, error) {
	if s.Accounts.Sender.LogOnly() {
		return newPart(false, map[string]int64{},
			"No mail server is configured (SOCLE_SMTP_URL); mails are written to the log."), nil
	}

	return newPart(true, map[string]int64{},
		"A mail server is configured; undelivered mails count as failed jobs."), nil
}

func (s *Server) keysHealth(ctx context.Context) (Part, error) {
	age, err := s.Platform.SigningKeyAge(ctx)
	return newPart(age < maxSigningKeyAge, map[string]int64{"ageSeconds": int64(age.Seconds())},
		"Access tokens are signed with a key that is %d days old.", int(age.Hours()/24)), err
}
