package rest

import (
	"net/http"
	"net/url"
	"strings"
)

// route is what a path names.
type route struct {
	name     string // of a relation or function; "" for the root
	function bool
}

// routeOf reads an escaped path.
func routeOf(path string) (route, error) {
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
			return route{}, badPath()
		}
	}
	if name == "" || strings.IndexByte(rest, '/') >= 0 || strings.IndexByte(name, 0) >= 0 {
		return route{}, badPath()
	}
	to.name = name
	return to, nil
}

func badPath() error {
	return fail(http.StatusNotFound, "PGRST125", "Invalid path specified in request URL")
}

// allowed refuses a method that the route does not know.
func (to route) allowed(method string) error {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	case http.MethodPost:
		if to.name != "" {
			return nil
		}
	case http.MethodPatch, http.MethodPut, http.MethodDelete:
		if to.function {
			return fail(http.StatusMethodNotAllowed, "PGRST101", "Cannot use the "+method+" method on RPC")
		}
		if to.name != "" {
			return nil
		}
	default:
		if to.function {
			return fail(http.StatusMethodNotAllowed, "PGRST101", "Cannot use the "+method+" method on RPC")
		}
	}
	return fail(http.StatusMethodNotAllowed, "PGRST117", "Unsupported HTTP method: "+method)
}
