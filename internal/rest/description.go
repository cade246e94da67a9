package rest

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Description returns the OpenAPI description of a role's privileges, for a server whose root has
// the given URL. It fails as requests of that role do.
func (s *Server) Description(ctx context.Context, role, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}

	recorder := &responseRecorder{header: http.Header{}}
	c := call{
		server:   s,
		w:        recorder,
		r:        r,
		path:     "/",
		caller:   Caller{Role: role, Claims: []byte("{}")},
		schema:   s.Schemas[0],
		deadline: time.Now().Add(s.Timeout),
	}

	var ok bool
	if c.role, ok = s.Role(role); !ok {
		return nil, errors.New("describe the schema: unknown role " + role)
	}

	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()

	snapshot, err := s.Catalog.get(ctx)
	if err != nil {
		return nil, catalogFailure(ctx, err)
	}

	c.setSnapshot(snapshot)
	if err := c.describe(ctx); err != nil {
		return nil, err
	}

	return recorder.body, nil
}

// responseRecorder is an http.ResponseWriter that keeps the body.
type responseRecorder struct {
	header http.Header
	body   []byte
}

func (r *responseRecorder) Header() http.Header { return r.header }
func (r *responseRecorder) WriteHeader(int)     {}
func (r *responseRecorder) Write(b []byte) (int, error) {
	r.body = append(r.body, b...)
	return len(b), nil
}
