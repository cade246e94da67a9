// Package forms has the operations on forms, their fields and responses.
package forms

import (
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/submission"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Cleaner     *object.Cleaner
	Platform    *platform.Store
	Submissions *submission.Service
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	operation.DescribeAs[form.Answers, answersSchema](p)

	p.Chapter("Forms", "forms",
		"Forms, their fields, and responses from people without an account.")
	s.registerForms(p)
	s.registerFields(p)
	s.registerSubmissions(p)
	s.registerResponses(p)
}
