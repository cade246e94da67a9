// Package openapi describes the rows API of a schema in OpenAPI 2.0, as PostgREST does: the
// relations and functions that a role can use.
//
// Package rest reads the role's privileges, answers requests for the description and caches it.
package openapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/catalog"
)

// Parts of an OpenAPI 2.0 document.
type (
	reference struct {
		Ref string `json:"$ref"`
	}
	shape struct {
		Description string          `json:"description,omitempty"`
		Type        string          `json:"type,omitempty"`
		Format      string          `json:"format,omitempty"`
		MaxLength   int             `json:"maxLength,omitempty"`
		Default     json.RawMessage `json:"default,omitempty"`
		Enum        []string        `json:"enum,omitempty"`
		Items       any             `json:"items,omitempty"` // *shape or reference
		Required    []string        `json:"required,omitempty"`
		Properties  object          `json:"properties,omitempty"`
	}
	parameter struct {
		Name             string   `json:"name"`
		Description      string   `json:"description,omitempty"`
		Required         bool     `json:"required"`
		In               string   `json:"in"`
		Type             string   `json:"type,omitempty"`
		Format           string   `json:"format,omitempty"`
		MaxLength        int      `json:"maxLength,omitempty"`
		Default          string   `json:"default,omitempty"`
		Enum             []string `json:"enum,omitempty"`
		CollectionFormat string   `json:"collectionFormat,omitempty"`
		Items            *shape   `json:"items,omitempty"`
		Schema           any      `json:"schema,omitempty"` // *shape or reference
	}
	response struct {
		Description string `json:"description"`
		Schema      *shape `json:"schema,omitempty"`
	}
	operation struct {
		Tags        []string `json:"tags"`
		Summary     string   `json:"summary,omitempty"`
		Description string   `json:"description,omitempty"`
		Produces    []string `json:"produces,omitempty"`
		Parameters  []any    `json:"parameters,omitempty"` // parameter or reference
		Responses   object   `json:"responses"`
	}
	path struct {
		Get    *operation `json:"get,omitempty"`
		Post   *operation `json:"post,omitempty"`
		Delete *operation `json:"delete,omitempty"`
		Patch  *operation `json:"patch,omitempty"`
	}
	info struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		Version     string `json:"version"`
	}
	securityScheme struct {
		Type        string `json:"type"`
		Name        string `json:"name"`
		In          string `json:"in"`
		Description string `json:"description"`
	}
)

// object is a JSON object with ordered members.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}

		text, err := encode(m.value)
		if err != nil {
			return nil, err
		}

		name, err := encode(m.name)
		if err != nil {
			return nil, err
		}

		b = append(append(append(b, name...), ':'), text...)
	}

	return append(b, '}'), nil
}

// encode is json.Marshal without HTML escaping: clients look for <pk/> and <fk …/>.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

const (
	contractVersion    = "14" // version of PostgREST
	objectType         = "application/vnd.pgrst.object+json"
	strippedObjectType = objectType + ";nulls=stripped"
)

// Schema is a schema to describe.
type Schema struct {
	Catalog  *catalog.Catalog
	Name     string
	Security bool // declare JWT security
	// Credentials goes on in the description of the JWT security, with which tokens it takes; ""
	// means nothing.
	Credentials string
	// Transactions tells that writes take an Idempotency-Key, and the root batches.
	Transactions bool
}

// ServerMembers returns the members in a description that depend on its server's URL, as a JSON
// object.
func ServerMembers(server *url.URL) ([]byte, error) {
	base := strings.TrimRight(server.EscapedPath(), "/")
	if base == "" {
		base = "/"
	}

	return encode(struct {
		Swagger  string   `json:"swagger"`
		Host     string   `json:"host"`
		BasePath string   `json:"basePath"`
		Schemes  []string `json:"schemes"`
	}{"2.0", server.Host, base, []string{server.Scheme}})
}

// Members returns a description's other members, as a JSON object: the schema's objects that may's
// role can use.
func (s Schema) Members(may Privileges) ([]byte, error) {
	relations, letters := s.usableRelations(may)
	functions := s.callableFunctions(may)

	root := path{Get: &operation{Tags: []string{"Introspection"}, Summary: "OpenAPI description (this document)",
		Produces:  []string{"application/openapi+json", "application/json"},
		Responses: object{{"200", response{Description: "OK"}}}}}
	parameters := sharedParameters()
	if s.Transactions {
		root.Post = batchOperation()
		parameters = append(parameters, member{idempotencyParameter, parameter{Name: "Idempotency-Key",
			Description: "Makes the request at most once: repeated within a day, it has the first answer",
			In:          "header", Type: "string", MaxLength: 255}})
	}

	paths := object{{"/", root}}
	var definitions object
	for i, r := range relations {
		paths = append(paths, member{"/" + r.Name.Name, s.repeatable(relationPath(r, letters[i]))})
		definitions = append(definitions, member{r.Name.Name, s.definition(r)})
		parameters = append(parameters, relationParameters(r)...)
	}

	for _, f := range functions {
		paths = append(paths, member{"/rpc/" + f.Name.Name, s.repeatable(functionPath(f))})
	}

	title, rest := summary(s.Catalog.Comments[s.Name])
	if title == "" {
		title = "PostgREST API"
	}
	if rest == "" {
		rest = "This is a dynamic API generated by PostgREST"
	}

	types := []string{"application/json", strippedObjectType, objectType, "text/csv"}
	all := object{
		{"info", info{title, rest, contractVersion}},
		{"externalDocs",
			object{{"description", "PostgREST Documentation"},
				{"url", "https://postgrest.org/en/v" + contractVersion + "/references/api.html"}}},
		{"consumes", types}, {"produces", types},
		{"paths", paths}, {"definitions", definitions}, {"parameters", parameters},
	}

	if s.Security {
		all = append(all,
			member{
				"securityDefinitions",
				object{
					{"JWT",
						securityScheme{"apiKey", "Authorization", "header",
							`Add the token prepending "Bearer " (without quotes) to it` + s.Credentials}},
				},
			},
			member{"security", []object{{{"JWT", []string{}}}}})
	}

	return encode(all)
}

// usableRelations returns the relations that the role can use, sorted by name, and its privilege
// letters.
func (s Schema) usableRelations(may Privileges) ([]*catalog.Relation, []string) {
	var relations []*catalog.Relation
	for name, r := range s.Catalog.Relations {
		if name.Schema == s.Name && may.on(r) != "" {
			relations = append(relations, r)
		}
	}

	slices.SortFunc(relations, func(a, b *catalog.Relation) int { return strings.Compare(a.Name.Name, b.Name.Name) })
	letters := make([]string, len(relations))
	for i, r := range relations {
		letters[i] = may.on(r)
	}

	return relations, letters
}

// callableFunctions returns the functions that the role can call, sorted by name. A path describes
// one function: the first overload.
func (s Schema) callableFunctions(may Privileges) []*catalog.Function {
	var functions []*catalog.Function
	for name, overloads := range s.Catalog.Functions {
		if i := slices.IndexFunc(overloads, may.canCall); i >= 0 && name.Schema == s.Name {
			functions = append(functions, overloads[i])
		}
	}

	slices.SortFunc(functions, func(a, b *catalog.Function) int { return strings.Compare(a.Name.Name, b.Name.Name) })
	return functions
}

// summary splits a comment into its first line and the rest.
func summary(comment string) (first, rest string) {
	first, rest, _ = strings.Cut(comment, "\n")
	return first, strings.TrimLeft(rest, "\n")
}

func sharedParameters() object {
	prefer := func(values ...string) parameter {
		return parameter{Name: "Prefer", Description: "Preference", In: "header", Type: "string", Enum: values}
	}

	text := func(name, in, description string) parameter {
		return parameter{Name: name, Description: description, In: in, Type: "string"}
	}

	const page = "Limiting and Pagination"
	unit := text("Range-Unit", "header", page)
	unit.Default = "items"
	returns := []string{"return=representation", "return=minimal", "return=none"}

	return object{
		{"preferParams", prefer()}, {"preferReturn", prefer(returns...)}, {"preferCount", prefer("count=none")},
		{"preferPost",
			prefer(slices.Concat(returns, []string{"resolution=ignore-duplicates", "resolution=merge-duplicates"})...)},
		{"select", text("select", "query", "Filtering Columns")},
		{"on_conflict", text("on_conflict", "query", "On Conflict")}, {"order", text("order", "query", "Ordering")},
		{"range", text("Range", "header", page)}, {"rangeUnit", unit}, {"offset", text("offset", "query", page)},
		{"limit", text("limit", "query", page)},
	}
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// refer returns a reference to a member of parameters or definitions.
func refer(to, name string) reference {
	return reference{"#/" + to + "/" + pointerEscaper.Replace(name)}
}

func filterName(relation, column string) string { return "rowFilter." + relation + "." + column }

func relationParameters(r *catalog.Relation) object {
	name := r.Name.Name
	all := object{
		{"body." + name, parameter{Name: name, Description: name, In: "body", Schema: refer("definitions", name)}},
	}

	for _, c := range r.Columns {
		all = append(all,
			member{
				filterName(name, c.Name), parameter{
					Name:        c.Name,
					Description: c.Description,
					In:          "query",
					Type:        "string",
				},
			})
	}

	return all
}

func relationPath(r *catalog.Relation, letters string) path {
	name := r.Name.Name
	first, rest := summary(r.Description)
	use := func(responses object, parameters ...[]any) *operation {
		return &operation{
			Tags:        []string{name},
			Summary:     first,
			Description: rest,
			Parameters:  slices.Concat(parameters...),
			Responses:   responses,
		}
	}

	shared := func(names ...string) (all []any) {
		for _, n := range names {
			all = append(all, refer("parameters", n))
		}
		return all
	}

	var filters []any
	for _, c := range r.Columns {
		filters = append(filters, refer("parameters", filterName(name, c.Name)))
	}

	none := object{{"204", response{Description: "No Content"}}}
	var p path
	for _, letter := range letters {
		switch letter {
		case 'r':
			rows := &shape{Type: "array", Items: refer("definitions", name)}
			p.Get = use(object{{"200", response{"OK", rows}}, {"206", response{Description: "Partial Content"}}},
				filters, shared("select", "order", "range", "rangeUnit", "offset", "limit", "preferCount"))
		case 'i':
			p.Post = use(object{{"201", response{Description: "Created"}}},
				shared("body."+name, "select", "preferPost"))
		case 'u':
			p.Patch = use(none, filters, shared("body."+name, "preferReturn"))
		case 'd':
			p.Delete = use(none, filters, shared("preferReturn"))
		}
	}

	return p
}

func functionPath(f *catalog.Function) path {
	first, rest := summary(f.Description)
	use := func(parameters []any) *operation {
		return &operation{Tags: []string{"(rpc) " + f.Name.Name}, Summary: first, Description: rest,
			Produces:   []string{"application/json", strippedObjectType, objectType},
			Parameters: parameters, Responses: object{{"200", response{Description: "OK"}}}}
	}

	args := &shape{Description: f.Description, Type: "object"}
	var query []any
	raw := false // the body is the only parameter
	for _, p := range f.Params {
		if p.Name == "" {
			raw, args = true, valueShape(p.Type)
			continue
		}

		p.Type = strings.TrimPrefix(strings.TrimPrefix(p.Type, f.Schema+"."), pg.Quote(f.Schema)+".")

		args.Properties = append(args.Properties, member{p.Name, valueShape(p.Type)})

		if p.Required {
			args.Required = append(args.Required, p.Name)
		}

		query = append(query, queryParameter(p))
	}

	out := path{
		Post: use(
			[]any{
				parameter{Name: "args", Required: true, In: "body", Schema: args}, refer("parameters", "preferParams"),
			},
		),
	}

	if f.Volatility != 'v' && !raw {
		out.Get = use(query)
	}

	return out
}

func queryParameter(p catalog.Parameter) parameter {
	s := valueShape(p.Type)
	out := parameter{Name: p.Name, Required: p.Required, In: "query", Type: s.Type, Format: s.Format}
	switch {
	case s.Type == "array" && p.Variadic:
		item := valueShape(strings.TrimSuffix(s.Format, "[]"))
		out.Format, out.CollectionFormat, out.Items = "", "multi", item
	case s.Type == "array", s.Type == "": // in PostgreSQL's text format
		out.Type = "string"
	}

	return out
}

// definition describes a relation's rows.
func (s Schema) definition(r *catalog.Relation) *shape {
	row := &shape{Description: r.Description, Type: "object"}
	for _, column := range r.Columns {
		if column.NotNull {
			row.Required = append(row.Required, column.Name)
		}

		p := valueShape(column.BaseType)
		p.MaxLength, p.Enum = column.MaxLength, column.Enum
		p.Default = defaultValue(column, p)
		p.Description = column.Description
		if note := s.keyNote(r, column.Name); note != "" {
			if p.Description != "" {
				p.Description += "\n\n"
			}
			p.Description += "Note:" + note
		}

		row.Properties = append(row.Properties, member{column.Name, p})
	}

	return row
}

// keyNote describes a column's primary and foreign keys.
func (s Schema) keyNote(r *catalog.Relation, column string) string {
	note := ""
	if slices.Contains(r.PrimaryKey, column) {
		note = "\nThis is a Primary Key.<pk/>"
	}

	var link *catalog.Link
	for _, l := range s.Catalog.Links[r.Name] {
		if (l.Kind != catalog.ManyToOne && !(l.Kind == catalog.OneToOne && l.Forward)) || len(l.Pairs) != 1 ||
			l.Pairs[0].From != column {
			continue
		}

		if link == nil || (s.isView(link.To) && !s.isView(l.To)) {
			link = l
		}
	}

	if link == nil {
		return note
	}

	table, to := link.To.Name, link.Pairs[0].To
	return note + "\nThis is a Foreign Key to `" + table + "." + to + "`.<fk table='" + table +
		"' column='" + to + "'/>"
}

func (s Schema) isView(name catalog.Name) bool {
	r := s.Catalog.Relations[name]
	return r != nil && (r.Kind == 'v' || r.Kind == 'm')
}
