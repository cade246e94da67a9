package rest

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/plan"
)

// route is the target of a path.
type route struct {
	target   catalog.Name // relation or function; without a name the root
	function bool
}

// parseRoute parses an escaped path.
func parseRoute(path string) (route, error) {
	rest := strings.TrimPrefix(path, "/")
	if rest == "" {
		return route{}, nil
	}

	var to route
	if name, ok := strings.CutPrefix(rest, "rpc/"); ok {
		rest, to.function = name, true
	}

	name := rest
	if strings.IndexByte(rest, '%') >= 0 {
		var err error
		if name, err = url.PathUnescape(rest); err != nil {
			return route{}, invalidPath()
		}
	}

	if name == "" || strings.IndexByte(rest, '/') >= 0 || strings.IndexByte(name, 0) >= 0 {
		return route{}, invalidPath()
	}

	to.target.Name = name
	return to, nil
}

func invalidPath() error {
	return newError(http.StatusNotFound, "PGRST125", "Invalid path specified in request URL")
}

// checkMethod fails for a method that the target does not support.
func (r route) checkMethod(method string) error {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	case http.MethodPost:
		if r.target.Name != "" {
			return nil
		}
	case http.MethodPatch, http.MethodPut, http.MethodDelete:
		if r.target.Name != "" && !r.function {
			return nil
		}
	}

	if r.function {
		return newError(http.StatusMethodNotAllowed, "PGRST101", "Cannot use the "+method+" method on RPC")
	}

	return newError(http.StatusMethodNotAllowed, "PGRST117", "Unsupported HTTP method: "+method)
}

// options answers OPTIONS with the methods that the target supports.
func (c *call) options() error {
	allow := "OPTIONS,GET,HEAD"
	name := c.route.target
	switch {
	case c.route.target.Name == "":
	case c.route.function:
		all := c.snapshot.Functions[name]
		if len(all) == 0 {
			return plan.NoFunction(c.snapshot.Catalog, name)
		}

		allow = "OPTIONS,POST"
		for _, f := range all {
			if f.Volatility != 'v' {
				allow = "OPTIONS,GET,HEAD,POST"
			}
		}
	default:
		t := c.snapshot.Relations[name]
		if t == nil {
			return plan.NoRelation(c.snapshot.Catalog, name)
		}

		if t.Insertable {
			allow += ",POST"
		}
		if t.Insertable && t.Updatable && len(t.PrimaryKey) > 0 {
			allow += ",PUT"
		}
		if t.Updatable {
			allow += ",PATCH"
		}
		if t.Deletable {
			allow += ",DELETE"
		}
	}

	h := c.w.Header()
	h.Set("Allow", allow)

	if h.Get("Access-Control-Allow-Origin") == "" && len(c.server.Origins) == 0 {
		h.Set("Access-Control-Allow-Origin", "*")
	}

	vary(h)
	c.writeHead(http.StatusOK, 0)

	return nil
}
