package server

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/jwt"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/projectdb"
)

// functionKeyTTL is the lifetime of the keys in a function's environment: that of its process, and
// some more.
const functionKeyTTL = 3 * time.Hour

// newFunctions returns the service that runs edge functions.
func (s *Server) newFunctions(c config.Config, out *outbound.Client) *function.Service {
	return function.New(function.Config{Program: findDeno(c), Outbound: out, Log: s.log,
		Self: s.self(), Environment: s.functionEnvironment})
}

// findDeno returns the path of Deno, or "".
func findDeno(c config.Config) string {
	if c.DenoBin != "" {
		return runtime.Find(c.DenoBin)
	}

	beside := ""
	if program, err := os.Executable(); err == nil {
		beside = filepath.Join(filepath.Dir(program), "deno")
	}

	return runtime.Find(filepath.Join(c.DataDir, "deno"), beside, "/usr/lib/socle/deno")
}

// CheckFunctions starts a function as the server would. It fails with the reason why the server
// runs none.
func CheckFunctions(ctx context.Context, c config.Config) error {
	p, err := runtime.Start(ctx, runtime.Config{Program: findDeno(c), Outward: http.NotFoundHandler(),
		Log: func(runtime.Line) {}})
	if err != nil {
		return err
	}
	defer p.Close()

	return p.Load(ctx, runtime.Module{Code: []byte("Deno.serve(() => new Response());")})
}

// self returns the server's own address, by which functions call their project.
func (s *Server) self() function.Self {
	public, err := url.Parse(s.URL)
	if err != nil || public.Scheme != "http" {
		return function.Self{}
	}

	host := public.Host
	if public.Port() == "" {
		host += ":80"
	}

	return function.Self{Host: host, Address: s.listener.Addr().String()}
}

// functionEnvironment returns the variables of a project's functions that Supabase has, too.
func (s *Server) functionEnvironment(_ context.Context, p *projectdb.Project) (map[string]string, error) {
	env := map[string]string{"SUPABASE_URL": s.URL + "/projects/" + p.UUID.String(), "SB_REGION": "local"}
	roles := map[string]string{"SUPABASE_ANON_KEY": "anon", "SUPABASE_SERVICE_ROLE_KEY": "service_role"}
	for name, role := range roles {
		key, err := jwt.SignRole([]byte(s.registry.JWTSecret(p.UUID)), role, time.Now().Add(functionKeyTTL))
		if err != nil {
			return nil, err
		}

		env[name] = key
	}

	return env, nil
}
