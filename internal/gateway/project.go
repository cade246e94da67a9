package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/jwt"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Project is a project under its current settings. It is immutable: a project with other settings
// is another value.
type Project struct {
	UUID     uuid.UUID
	Database *projectdb.Project
	Settings Settings
	Inactive *fault.Error // failure for every request to a paused or deleted project; nil if it is active

	gateway  *Gateway
	text     string // Settings as JSON
	tokens   *jwt.Verifier
	handlers []Handler // by interface index
}

// openProject opens a project with all its interfaces. former is the same project under other
// settings, or nil.
func (g *Gateway) openProject(id uuid.UUID, text string, former *Project) (*Project, error) {
	p := &Project{UUID: id, Database: g.Projects.Open(id), gateway: g, text: text,
		handlers: make([]Handler, len(g.Interfaces))}
	if err := json.Unmarshal([]byte(text), &p.Settings); err != nil {
		return nil, fmt.Errorf("read the settings of the project: %w", err)
	}

	p.Inactive = inactive[p.Settings.Status]

	var err error
	if p.tokens, err = p.newVerifier(); err != nil {
		return nil, err
	}

	for i := range g.Interfaces {
		var formerCache Cache
		if former != nil {
			formerCache = former.handlers[i].Cache
		}

		if p.handlers[i], err = g.Interfaces[i].Open(p, formerCache); err != nil {
			return nil, err
		}
	}

	return p, nil
}

// StatementTimeout returns the timeout for statements of an application's role; 0 means none.
func (p *Project) StatementTimeout(role string) time.Duration {
	switch role {
	case "anon":
		return time.Duration(p.Settings.Rest.AnonTimeoutMS) * time.Millisecond
	case "authenticated":
		return time.Duration(p.Settings.Rest.AuthenticatedTimeoutMS) * time.Millisecond
	}

	return 0
}

// URL returns an interface's address, or "" if the install does not know its own.
func (p *Project) URL(prefix string) string {
	if p.gateway.PublicURL == "" {
		return ""
	}
	return p.gateway.PublicURL + "/projects/" + p.UUID.String() + prefix
}

// Cache returns an interface's cache, or nil.
func (p *Project) Cache(prefix string) Cache {
	for i := range p.gateway.Interfaces {
		if p.gateway.Interfaces[i].Prefix == prefix {
			return p.handlers[i].Cache
		}
	}

	return nil
}

// Recheck reads the project's status again, after its database was out of reach. It fails as
// [Project.Inactive] has it if the project was paused or deleted since, and with ErrUnknownProject
// if it was purged. It returns nil if the status can't be read.
func (p *Project) Recheck(ctx context.Context) error {
	text, err := p.gateway.settings.refresh(ctx, p.UUID)
	if fault.Is(err, fault.NotFound) {
		return ErrUnknownProject
	}

	var s Settings
	if err != nil || json.Unmarshal([]byte(text), &s) != nil {
		return nil
	}
	if failure := inactive[s.Status]; failure != nil {
		return failure
	}

	return nil
}

// Current returns the project under its current settings, for a caller that outlives its request,
// such as a socket. It fails with ErrUnknownProject if the project was purged. It needs a query at
// most every five seconds.
func (p *Project) Current(ctx context.Context) (*Project, error) {
	return p.gateway.findProject(ctx, p.UUID.String())
}

// size returns the project's approximate memory in bytes.
func (p *Project) size() int64 {
	size := projectOverhead
	for _, h := range p.handlers {
		if h.Cache != nil {
			size += h.Cache.Size()
		}
	}

	return int64(size)
}

func (p *Project) close() {
	for _, h := range p.handlers {
		if h.Cache != nil {
			h.Cache.Close()
		}
	}
}
