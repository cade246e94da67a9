package server

import (
	"context"

	"github.com/google/uuid"
)

// runReplicas runs the standbys that answer reads until ctx ends, if there are any.
func (s *Server) runReplicas(ctx context.Context) error {
	if s.replicas == nil {
		return nil
	}

	return s.replicas.Run(ctx)
}

// resizeReplicas changes the maximum number of open connections to each standby.
func (s *Server) resizeReplicas(connections int) {
	if s.replicas != nil {
		s.replicas.Resize(connections)
	}
}

// projectChanged follows a pause, resumption, deletion or restore of a project.
func (s *Server) projectChanged(project uuid.UUID) {
	s.gateway.Invalidate(project)
	s.functions.End(project)
	if s.replicas != nil {
		s.replicas.ResetPools(project)
	}
}

// poolContended reports whether a request waits for a connection to a project, see
// [session.Config].
func (s *Server) poolContended() bool {
	return s.registry.PoolContended() || (s.replicas != nil && s.replicas.PoolContended())
}
