package rest

import (
	"net/http"
	"slices"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
	"github.com/socle-dev/socle/internal/rest/session"
)

// plannedRequest is a request with its SQL.
type plannedRequest struct {
	plan.Plan
	function  *catalog.Function // called function, or nil
	readOnly  bool
	overQuota bool // readOnly because the database exceeds its quota
	streams   bool // a long body may be streamed; otherwise it is buffered
	count     plan.Count
	check     func(*session.Result) error
}

// plan builds the statement of the request.
func (c *call) plan() error {
	s, req := c.server, &c.planRequest
	*req = plan.Request{
		Target: c.route.target, Query: c.query, Range: c.window,
		MaxRows: s.Limits.MaxRows, Aggregates: s.Features.Aggregates, AliasesOnly: s.Features.AliasesOnly,
		Before: s.preRequestSQL != "", SharedOrigin: s.Features.SharedOrigin, Head: c.r.Method == http.MethodHead,
	}

	switch c.prefer.Count {
	case "exact":
		req.Count = plan.Exact
	case "planned":
		req.Count = plan.Planned
	case "estimated":
		req.Count = plan.Estimated
	}

	switch c.prefer.Return {
	case "headers-only":
		req.Return = plan.HeadersOnly
	case "representation":
		req.Return = plan.Representation
	}

	c.planned = plannedRequest{count: req.Count}

	switch {
	case c.route.function:
		return c.planCall(req)
	case c.r.Method == http.MethodGet || c.r.Method == http.MethodHead:
		return c.planRead(req)
	}

	return c.planWrite(req)
}

func (c *call) planRead(req *plan.Request) (err error) {
	if err := c.negotiate(req, req.Target); err != nil {
		return err
	}

	if err := c.prefer.StrictError(); err != nil {
		return err
	}

	c.planned.readOnly = true
	c.planned.Plan, err = c.server.plans.Plan(plan.ReadAction, plan.Read, c.snapshot.Catalog, req)
	return err
}

func (c *call) planWrite(req *plan.Request) (err error) {
	if err := c.prefer.StrictError(); err != nil {
		return err
	}
	if over, far := c.server.Hooks.Quota(); over && (far || c.r.Method != http.MethodDelete) {
		return errOverQuota
	}

	if err := c.negotiate(req, req.Target); err != nil {
		return err
	}
	if err := c.convertRows(req.Target); err != nil {
		return err
	}

	req.MaxBody = c.server.sessions.MaxResponse
	req.Body, req.Cells = c.payload.text, c.payload.cells
	req.Missing = c.prefer.Missing == "default"
	out := &c.planned
	if c.media.single() && c.r.Method != http.MethodPut {
		out.check = checkSingle
	}

	switch c.r.Method {
	case http.MethodPost:
		switch c.prefer.Resolution {
		case "merge-duplicates":
			req.Resolve = plan.MergeDuplicates
		case "ignore-duplicates":
			req.Resolve = plan.IgnoreDuplicates
		}

		out.Plan, err = c.server.plans.Plan(plan.InsertAction, plan.Insert, c.snapshot.Catalog, req)
	case http.MethodPut:
		out.check = checkPut
		out.Plan, err = c.server.plans.Plan(plan.PutAction, plan.Put, c.snapshot.Catalog, req)
	case http.MethodPatch:
		out.Plan, err = c.server.plans.Plan(plan.UpdateAction, plan.Update, c.snapshot.Catalog, req)
	case http.MethodDelete:
		out.Plan, err = c.server.plans.Plan(plan.DeleteAction, plan.Delete, c.snapshot.Catalog, req)
	}

	if c.r.Method == http.MethodPatch || c.r.Method == http.MethodDelete {
		out.check = c.withMaxAffected(out.check)
	}

	return err
}

func (c *call) planCall(req *plan.Request) error {
	get := c.r.Method != http.MethodPost
	f, err := c.chooseFunction(req.Target, get)
	if err != nil {
		return err
	}

	readOnly := get || f.Volatility != 'v'
	over, far := c.server.Hooks.Quota()
	overQuota := over && !readOnly
	if overQuota && far {
		return errOverQuota
	}

	readOnly = readOnly || overQuota
	if !readOnly {
		req.MaxBody = c.server.sessions.MaxResponse
	}

	target := f.Name
	if f.Returns.Composite && f.Returns.Relation != (catalog.Name{}) {
		target = f.Returns.Relation
	}

	if err := c.negotiate(req, target); err != nil {
		return err
	}

	if err := c.prefer.StrictError(); err != nil {
		return err
	}

	switch {
	case get:
	case c.payload.form != nil: // a variadic parameter takes all values of its name
		q := *c.query
		q.Params = nil
		for name, values := range c.payload.form {
			for _, v := range values {
				q.Params = append(q.Params, query.Param{Name: name, Value: v})
			}
		}

		req.Query = &q
	default:
		if c.payload.csv != nil {
			err = c.convertCSV(csvTarget{firstOnly: true, emptyNull: func(string) bool { return false },
				keep: func(name string) bool {
					return slices.ContainsFunc(f.Params, func(p catalog.Parameter) bool { return p.Name == name })
				}})
			if err != nil {
				return err
			}
		}

		req.Body = c.payload.text
	}

	p, err := plan.Call(c.snapshot.Catalog, req, f)
	if err != nil {
		return err
	}

	out := &c.planned
	out.Plan, out.function, out.readOnly, out.overQuota = *p, f, readOnly, overQuota

	if c.strictMaxAffected() && !f.Returns.Set {
		return newError(http.StatusBadRequest, "PGRST128",
			"Function must return SETOF or TABLE when max-affected preference is used with handling=strict")
	}

	if c.media.single() && !readOnly {
		out.check = checkSingle
	}

	out.check = c.withMaxAffected(out.check)
	return nil
}

// chooseFunction returns the overload that matches the arguments.
func (c *call) chooseFunction(name catalog.Name, get bool) (*catalog.Function, error) {
	switch {
	case get:
		var names []string
		seen := map[string]bool{}
		for _, p := range c.query.Params {
			if !seen[p.Name] {
				seen[p.Name] = true
				names = append(names, p.Name)
			}
		}

		return plan.Choose(c.snapshot.Catalog, name, names, "")
	case c.payload.raw == "json":
		return plan.ChooseJSON(c.snapshot.Catalog, name, c.query.Columns, c.payload.text)
	case c.payload.raw == "":
		names := c.query.Columns
		switch {
		case names != nil:
		case c.payload.csv != nil:
			names = c.payload.csv.names
		default:
			var err error
			if names, err = plan.Keys(c.payload.text); err != nil {
				return nil, err
			}
		}

		return plan.Choose(c.snapshot.Catalog, name, names, "")
	}

	return plan.Choose(c.snapshot.Catalog, name, c.query.Columns, c.payload.raw)
}

func (c *call) negotiate(req *plan.Request, target catalog.Name) error {
	var err error
	if c.media, err = c.server.negotiate(c.r, c.snapshot.Catalog, target, c.query); err != nil {
		return err
	}

	req.Format, req.Handler = c.media.format, c.media.handler
	return nil
}

// convertRows converts a CSV body to JSON for a relation. The relation must have the columns named
// by columns= or else by the header line.
func (c *call) convertRows(target catalog.Name) error {
	rel := c.snapshot.Relations[target]
	if c.payload.csv == nil || rel == nil {
		return nil
	}

	for _, name := range c.payload.csv.names {
		if c.query.Columns == nil && rel.ByName[name] == nil {
			return plan.NoColumn(rel, name)
		}
	}

	isListed := make(map[string]bool, len(c.query.Columns))
	for _, name := range c.query.Columns {
		isListed[name] = true
	}

	c.payload.cells = true
	return c.convertCSV(csvTarget{
		keep: func(name string) bool {
			return rel.ByName[name] != nil && (c.query.Columns == nil || isListed[name])
		},
		emptyNull: func(name string) bool { return !rel.ByName[name].NotNull },
	})
}

// convertCSV replaces a CSV body by JSON.
func (c *call) convertCSV(to csvTarget) error {
	text, err := c.payload.csv.json(to, maxCSVGrowth*c.server.Limits.MaxBody)
	if err != nil {
		return err
	}

	c.payload.text, c.payload.csv = text, nil
	return c.payload.lease.take(c.r.Context(), int64(len(text)))
}

// maxCSVGrowth limits the JSON of a CSV body to a multiple of MaxBody, since every row repeats the
// column names.
const maxCSVGrowth = 3

func (c *call) strictMaxAffected() bool {
	return c.prefer.Handling == "strict" && c.prefer.MaxAffected != nil
}

// withMaxAffected wraps a check to enforce the max-affected preference.
func (c *call) withMaxAffected(other func(*session.Result) error) func(*session.Result) error {
	if !c.strictMaxAffected() {
		return other
	}

	return func(r *session.Result) error {
		if r.Rows > *c.prefer.MaxAffected {
			e := newError(http.StatusBadRequest, "PGRST124", "Query result exceeds max-affected preference constraint")
			e.Details = "The query affects " + formatInt(r.Rows) + " rows"

			return e
		}

		if other != nil {
			return other(r)
		}

		return nil
	}
}

func checkSingle(r *session.Result) error {
	if r.Rows == 1 {
		return nil
	}

	e := newError(http.StatusNotAcceptable, "PGRST116", "Cannot coerce the result to a single JSON object")
	e.Details = "The result contains " + formatInt(r.Rows) + " rows"

	return e
}

func checkPut(r *session.Result) error {
	if r.Rows == 1 {
		return nil
	}
	return newError(http.StatusBadRequest, "PGRST115", "Payload values do not match URL in primary key column(s)")
}
