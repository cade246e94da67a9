package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"socle/internal/rest/catalog"
	"socle/internal/rest/plan"
)

const (
	openAPIType     = "application/openapi+json; charset=utf-8"
	descriptionTTL  = 5 * time.Second // of a cached description, since GRANT is not notified
	maxDescriptions = 16              // cached per server
)

// describe answers requests for the root with the OpenAPI description of the role's privileges in a
// schema.
func (c *call) describe(ctx context.Context) error {
	s := c.server

	kind, err := descriptionType(c.r.Header["Accept"])
	if err != nil {
		return err
	}

	head, err := c.serverMembers()
	if err != nil {
		return err
	}

	c.timings.mark(&c.timings.parse)
	h := c.w.Header()
	vary(h)

	status := http.StatusOK
	c.refresh(ctx)
	key := descriptionKey{c.catalog, c.caller.Role, c.schema}
	body := s.descriptions.get(key)
	if body == nil || s.preRequestSQL != "" { // the pre-request function may refuse
		c.planned = plannedRequest{Plan: plan.Plan{SQL: selectPrivileges, Args: []any{c.schema}}, readOnly: true}
		res, err := c.execute(ctx)
		for attempts := 0; isStaleCatalog(err) && c.replaceSnapshot(ctx, attempts); attempts++ {
			key.catalog = c.catalog
			res, err = c.execute(ctx)
		}

		if isConcurrentDrop(err) {
			res, err = c.execute(ctx)
		}
		if err != nil {
			return err
		}

		defer res.release()

		c.timings.mark(&c.timings.transaction)
		may := allPrivileges
		if s.OpenAPIMode != "ignore-privileges" {
			if may, err = readPrivileges(res.body); err != nil {
				return err
			}
		}

		if body, err = encode(c.description(may)); err != nil {
			return err
		}

		s.descriptions.put(key, body)
		if status, err = s.applyOverrides(h, status, res); err != nil {
			return err
		}
	}

	if h["Content-Type"] == nil {
		c.setHeader(h, "Content-Type", kind)
	}
	if len(s.Schemas) > 1 || c.r.Header["Accept-Profile"] != nil {
		c.setHeader(h, "Content-Profile", c.schema)
	}

	head[len(head)-1] = ','
	return c.writeResponse(status, true, &result{prefix: head, body: body[1:]})
}

// descriptionType returns the Content-Type of a description for Accept headers.
func descriptionType(header []string) (string, error) {
	all := parseAccept(header)
	if len(all) == 0 {
		return openAPIType, nil
	}

	for _, w := range all {
		switch w.name {
		case "application/openapi+json", "*/*":
			return openAPIType, nil
		case "application/json":
			return jsonType, nil
		}
	}

	return "", notAcceptable(all)
}

// serverMembers returns the members of a description that depend on the server's URL, as a JSON
// object.
func (c *call) serverMembers() ([]byte, error) {
	where := &url.URL{Scheme: "http", Host: c.r.Host, Path: c.r.URL.Path}
	if c.r.TLS != nil {
		where.Scheme = "https"
	}

	if configured := c.server.OpenAPIServer; configured != "" {
		var err error
		if where, err = url.Parse(configured); err != nil {
			return nil, fmt.Errorf("parse the server URL of the description: %w", err)
		}
	}

	base := strings.TrimRight(where.EscapedPath(), "/")
	if base == "" {
		base = "/"
	}

	return encode(struct {
		Swagger  string   `json:"swagger"`
		Host     string   `json:"host"`
		BasePath string   `json:"basePath"`
		Schemes  []string `json:"schemes"`
	}{"2.0", where.Host, base, []string{where.Scheme}})
}

// selectPrivileges returns the row that execute expects. Its body has the role's privileges: the
// letters of select, insert, update and delete by relation, and the names and parameters of
// callable functions, by which requests distinguish overloads.
const selectPrivileges = `
	select null, 0, null, pg_catalog.current_setting('response.headers', true), pg_catalog.current_setting('response.status', true), null,
		pg_catalog.json_build_object(
			'relations', (
				select coalesce(pg_catalog.json_object_agg(c.relname, pg_catalog.concat(
					case when pg_catalog.has_any_column_privilege(c.oid, 'select') then 'r' end,
					case when pg_catalog.has_any_column_privilege(c.oid, 'insert') then 'i' end,
					case when pg_catalog.has_any_column_privilege(c.oid, 'update') then 'u' end,
					case when pg_catalog.has_table_privilege(c.oid, 'delete') then 'd' end)), '{}')
				from pg_catalog.pg_class c
				where c.relnamespace = n.oid and c.relkind in ('r', 'v', 'm', 'f', 'p')),
			'functions', (
				select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('name', p.proname, 'params', array(
					select coalesce(p.proargnames[i], '')
					from pg_catalog.generate_series(1, pg_catalog.cardinality(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[]))) i
					where p.proargmodes is null or p.proargmodes[i] in ('i', 'b', 'v')
					order by i))), '[]')
				from pg_catalog.pg_proc p
				where p.pronamespace = n.oid and pg_catalog.has_function_privilege(p.oid, 'execute')))
	from (select pg_catalog.max(n.oid) as oid from pg_catalog.pg_namespace n
		where n.nspname = $1::text and pg_catalog.has_schema_privilege(n.oid, 'usage')) n`

// privileges are a role's privileges in a schema.
type privileges struct {
	all       bool
	relations map[string]string // letters by name
	functions map[string]bool   // by signature
}

var allPrivileges = privileges{all: true}

func readPrivileges(text []byte) (privileges, error) {
	var got struct {
		Relations map[string]string
		Functions []struct {
			Name   string
			Params []string
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return privileges{}, fmt.Errorf("decode the privileges of a role: %w", err)
	}

	may := privileges{relations: got.Relations, functions: map[string]bool{}}
	for _, f := range got.Functions {
		may.functions[signature(f.Name, f.Params)] = true
	}

	return may, nil
}

// signature identifies a function in its schema.
func signature(name string, params []string) string {
	return strings.Join(slices.Concat([]string{name}, params), "\x00")
}

// on returns the letters of the operations possible on a relation.
func (p privileges) on(r *catalog.Relation) string {
	may := "riud"
	if !p.all {
		may = p.relations[r.Name.Name]
	}

	return strings.Map(func(letter rune) rune {
		if (letter == 'i' && !r.Insertable) || (letter == 'u' && !r.Updatable) || (letter == 'd' && !r.Deletable) {
			return -1
		}
		return letter
	}, may)
}

// canCall reports whether the role may call a function.
func (p privileges) canCall(f *catalog.Function) bool {
	if p.all {
		return true
	}

	var params []string
	for _, one := range f.Params {
		params = append(params, one.Name)
	}

	return p.functions[signature(f.Name.Name, params)]
}

// descriptions caches the descriptions of one catalog.
type descriptions struct {
	ttl time.Duration

	mu      sync.Mutex
	entries map[descriptionKey]cachedDescription
}

// descriptionKey identifies a description.
type descriptionKey struct {
	catalog      *catalog.Catalog
	role, schema string
}

type cachedDescription struct {
	text      []byte
	createdAt time.Time
}

// get returns a fresh description, or nil.
func (d *descriptions) get(key descriptionKey) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()

	if one, ok := d.entries[key]; ok && time.Since(one.createdAt) < d.ttl {
		return one.text
	}

	return nil
}

// put caches a description and evicts outdated ones.
func (d *descriptions) put(key descriptionKey, text []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.entries == nil {
		d.entries = map[descriptionKey]cachedDescription{}
	}

	for other, one := range d.entries {
		if other.catalog != key.catalog || time.Since(one.createdAt) >= d.ttl || len(d.entries) >= maxDescriptions {
			delete(d.entries, other)
		}
	}

	d.entries[key] = cachedDescription{text, time.Now()}
}

func (d *descriptions) size() (size int) {
	d.mu.Lock()
	defer d.mu.Unlock()

	for _, one := range d.entries {
		size += len(one.text)
	}

	return size
}
