package projectdb

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// OnWrite makes the registry call f after user code may have written to a project: when the owner's
// connection is released, after a transaction on end users, and after statements of client
// sessions. The rows API knows which of its requests write, and reports them itself. Call it once,
// before the registry is used.
func (r *Registry) OnWrite(f func(project uuid.UUID)) { r.onWrite = f }

// written reports that user code may have written.
func (p *Project) written() { p.registry.onWrite(p.UUID) }

// writeTracer reports each release of a connection as a write.
type writeTracer struct {
	pgx.QueryTracer
	project *Project
}

// TraceRelease implements [pgxpool.ReleaseTracer].
func (t writeTracer) TraceRelease(*pgxpool.Pool, pgxpool.TraceReleaseData) { t.project.written() }

// Read reads from PostgreSQL. What it says may be the end of a statement that has written.
func (s *Session) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n > 0 && !s.readOnly {
		s.project.written()
	}

	return n, err
}
