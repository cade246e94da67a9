package operation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Slices are never null in JSON; huma keeps this setting in a package variable.
func init() { huma.DefaultArrayNullable = false }

const introduction = "Users, organizations, projects, and the contents of projects: tables, functions, forms, " +
	"files, end users, backups.\n\n" +
	"Guides: [from Supabase](/docs?api=from-supabase), [import data](/docs?api=import), " +
	"[Next.js](/docs?api=nextjs), [protect a table](/docs?api=protect-a-table), [end users](/docs?api=end-users), " +
	"[files of applications](/docs?api=files), [S3](/docs?api=s3), [migrations](/docs?api=migrations), " +
	"[back up and restore](/docs?api=back-up-and-restore), [deploy](/docs?api=deploy).\n\n" +
	"Manual: [rules of the API](/docs?api=api), [command line](/docs?api=cli), [operations](/docs?api=operations), " +
	"[`socle rest`](/docs?api=rest).\n\n" +
	"Every JSON response is an envelope of `content`, `errors`, `metadata` and `success`. A failure has the text " +
	"`\"null\"` as its content, one message in `errors`, determined by the status, and in `metadata` a stable " +
	"`code`, a `detail` for people, the invalid `fields` and the `requestId`."

// newOpenAPI returns an empty document and its schema registry.
func newOpenAPI() (*huma.OpenAPI, huma.Registry) {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	registry.RegisterTypeAlias(reflect.TypeFor[uuid.UUID](), reflect.TypeFor[uuidSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[anySchema]())

	config := huma.Config{OpenAPI: &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:       "Socle",
			Version:     "1.0",
			Description: introduction,
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "The server that serves this document."}},
		Components: &huma.Components{Schemas: registry, Responses: map[string]*huma.Response{},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"bearer": {Type: "http", Scheme: "bearer", BearerFormat: "JWT",
					Description: "An access token of a session, or a personal access token. The rows API and the storage " +
						"API of a project take it too: from a developer or higher as service_role, from a viewer for reading. " +
						"The header X-Socle-As: anon, or user: and the UUID of an end user, acts as that caller."},
				"apikey": {Type: "apiKey", In: "header", Name: "apikey", Description: "A key of the project."},
				"signature": {Type: "apiKey", In: "query", Name: SignatureParam,
					Description: "Signature of a signed URL."},
				"link": {Type: "apiKey", In: "query", Name: "link", Description: "A form's public link."},
			}},
	}}

	config.AllowAdditionalPropertiesByDefault = true // unknown body members are ignored
	huma.NewAPI(config, nil)                         // configures the registry
	failureSchema := registry.Schema(reflect.TypeFor[failure](), true, "")
	registry.Map()["Failed"] = envelopeSchema(&huma.Schema{Type: huma.TypeString, Enum: []any{"null"}}, failureSchema,
		false)

	return config.OpenAPI, registry
}

// schemaName returns the name for a type's schema: the type's own name, or one with its package
// where two packages share a name.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	switch t.String() {
	case "form.Answer":
		return "FormAnswer"
	case "form.Statistics":
		return "FormStatistics"
	case "form.Field":
		return "FormField"
	case "fault.Field":
		return "FieldAtFault"
	}

	name := huma.DefaultSchemaNamer(t, hint)
	return strings.ToUpper(name[:1]) + name[1:]
}

// uuidSchema is the schema type for a UUID.
type uuidSchema struct{}

// Schema returns the schema for a UUID.
func (uuidSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "uuid"}
}

// anySchema is the schema type for any JSON value.
type anySchema struct{}

// Schema returns the schema for any value.
func (anySchema) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

func envelopeSchema(content, metadata *huma.Schema, success bool) *huma.Schema {
	errors := &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}
	count := 1
	if success {
		count = 0
	}

	errors.MinItems, errors.MaxItems = &count, &count
	return &huma.Schema{Type: huma.TypeObject, Required: []string{"content", "errors", "metadata", "success"},
		Properties: map[string]*huma.Schema{"content": content, "errors": errors, "metadata": metadata,
			"success": {Type: huma.TypeBoolean, Enum: []any{success}}}}
}

// describe adds the operation to the document.
func (rt *route) describe(output reflect.Type) {
	op := &huma.Operation{OperationID: rt.op.ID, Method: rt.op.Method,
		Path: strings.TrimSuffix(rt.op.Path, "...}"), Summary: rt.op.Summary,
		Description: rt.op.description(), Security: rt.op.Access.security,
		Responses: map[string]*huma.Response{}}
	if rt.chapter != "" {
		op.Tags = []string{rt.chapter}
	}
	if op.Path != rt.op.Path {
		op.Path += "}"
	}
	if rt.op.Destructive != nil {
		op.Extensions = map[string]any{"x-destructive": true}
	}

	document(op, rt.params)

	if rt.bodySchema != nil {
		op.RequestBody = &huma.RequestBody{
			Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: rt.bodyForms()}},
		}
	}
	if len(rt.op.Body.content) > 0 {
		if op.RequestBody == nil {
			op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}}
		}
		maps.Copy(op.RequestBody.Content, rt.op.Body.content)
	}

	op.Responses[strconv.Itoa(rt.status)] = rt.describeSuccess(output)
	rt.describeMembers(output)
	failures := rt.op.Errors
	if rt.op.Ranges { // net/http's responses to Range and If-None-Match
		op.Responses["206"] = rt.describeSuccess(output)
		op.Responses["206"].Description = "A range of the bytes"
		op.Responses["304"] = &huma.Response{Description: "The file matches If-None-Match"}
		failures = append(slices.Clone(failures), http.StatusPreconditionFailed,
			http.StatusRequestedRangeNotSatisfiable)
	}

	if rt.op.Method == http.MethodGet && rt.hasEnvelope() {
		op.Responses["304"] = &huma.Response{
			Description: "The response matches If-None-Match",
		}
	}

	for _, status := range failures {
		op.Responses[strconv.Itoa(status)] = rt.describeFailure(status)
	}

	rt.addExamples(op)
	rt.addOperation(op)
}

// addOperation adds an operation to the document, after those registered before it. Readers see a
// chapter's operations in this order.
func (rt *route) addOperation(op *huma.Operation) {
	if rt.openapi.Extensions == nil {
		rt.openapi.Extensions = map[string]any{"paths": &members{}}
	}

	paths := rt.openapi.Extensions["paths"].(*members)
	methods, ok := paths.get(op.Path).(*members)
	if !ok {
		methods = &members{}
		paths.add(op.Path, methods)
	}

	methods.add(strings.ToLower(op.Method), op)
}

// members is a JSON object whose members keep their insertion order.
type members struct {
	names  []string
	values []any
}

func (m *members) add(name string, value any) {
	m.names, m.values = append(m.names, name), append(m.values, value)
}

// get returns a member's value; nil if it is absent.
func (m *members) get(name string) any {
	if i := slices.Index(m.names, name); i >= 0 {
		return m.values[i]
	}
	return nil
}

// MarshalJSON returns the object.
func (m *members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, name := range m.names {
		value, err := json.Marshal(m.values[i])
		if err != nil {
			return nil, err
		}

		fmt.Fprintf(&b, ",%q:%s", name, value)
	}

	return append([]byte("{"), append(bytes.TrimPrefix(b.Bytes(), []byte(",")), '}')...), nil
}

// bodyForms returns a schema that accepts all forms of the JSON body.
func (rt *route) bodyForms() *huma.Schema {
	if rt.op.ListOf == "" {
		return rt.bodySchema
	}

	body := rt.registry.SchemaFromRef(rt.bodySchema.Ref)
	item := *rt.registry.SchemaFromRef(body.Properties[rt.op.ListOf].Items.Ref)
	item.Properties = maps.Clone(item.Properties)

	for name, member := range body.Properties {
		if name != rt.op.ListOf {
			item.Properties[name] = member
		}
	}

	name := strings.ToUpper(rt.op.ID[:1]) + rt.op.ID[1:] + "Item"
	rt.registry.Map()[name] = &item

	return &huma.Schema{OneOf: []*huma.Schema{{Ref: "#/components/schemas/" + name}, rt.bodySchema}}
}

// describeFailure returns a reference to the response for a failure status, which all operations
// share.
func (rt *route) describeFailure(status int) *huma.Response {
	words := strings.Fields(messages[status])
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}

	name := strings.Join(words, "") // NotFound
	rt.openapi.Components.Responses[name] = &huma.Response{
		Description: messages[status],
		Content: map[string]*huma.MediaType{"application/json": {
			Schema:  &huma.Schema{Ref: "#/components/schemas/Failed"},
			Example: exampleFailure(status),
		}},
	}

	return &huma.Response{Ref: "#/components/responses/" + name}
}

func (rt *route) describeSuccess(output reflect.Type) *huma.Response {
	if rt.op.Upgrade != "" {
		return &huma.Response{Description: "The connection switches to " + rt.op.Upgrade}
	}

	if output.Implements(reflect.TypeFor[http.Handler]()) {
		media := "application/octet-stream"
		if rt.op.MediaType != "" {
			media = rt.op.MediaType
		}

		return &huma.Response{Description: "The file", Content: map[string]*huma.MediaType{
			media: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	}

	if output == reflect.TypeFor[PlainJSON]() {
		return &huma.Response{
			Description: "The document",
			Content:     map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject}}},
		}
	}

	content, metadata := typesOf(output)
	meta := &huma.Schema{Type: huma.TypeObject}
	if metadata != reflect.TypeFor[struct{}]() {
		meta = rt.registry.Schema(metadata, true, rt.op.ID+"Metadata")
	}

	s := envelopeSchema(rt.registry.Schema(content, true, rt.op.ID+"Content"), meta, true)
	if rt.op.Wrapped {
		one := 1
		s = &huma.Schema{Type: huma.TypeArray, Items: s, MinItems: &one, MaxItems: &one}
	}

	return &huma.Response{
		Description: http.StatusText(rt.status), Content: map[string]*huma.MediaType{"application/json": {Schema: s}},
	}
}

// typesOf returns the content and metadata types in an output.
func typesOf(output reflect.Type) (content, metadata reflect.Type) {
	if a, ok := reflect.Zero(output).Interface().(detailedResult); ok {
		return a.types()
	}
	return output, reflect.TypeFor[struct{}]()
}

// describeMembers gives each undescribed body member the description of the same member in the
// content. Body names have underscores, content names capitals.
func (rt *route) describeMembers(output reflect.Type) {
	if rt.bodySchema == nil || rt.bodySchema.Ref == "" || !rt.hasEnvelope() {
		return
	}

	content, _ := typesOf(output)
	schema := rt.registry.Schema(content, true, rt.op.ID+"Content")
	if schema.Ref == "" {
		return
	}

	descriptions := map[string]string{}
	for name, member := range rt.registry.SchemaFromRef(schema.Ref).Properties {
		descriptions[strings.ToLower(name)] = member.Description
	}

	for name, member := range rt.registry.SchemaFromRef(rt.bodySchema.Ref).Properties {
		if member.Description == "" && member.Ref == "" {
			member.Description = descriptions[strings.ReplaceAll(name, "_", "")]
		}
	}
}

// description returns the notes followed by the access rule.
func (op Operation) description() string {
	notes := op.Notes
	if op.Destructive != nil {
		notes = strings.TrimSpace(notes + " " + destructiveNotes)
	}

	return strings.TrimSpace(notes + "\n\n" + op.Access.rule)
}

// Document returns the OpenAPI 3.1 document, indented.
func (p *Pipeline) Document() []byte {
	for _, rt := range p.routes {
		if rt.op.Protocol == nil {
			rt.describe(rt.output)
		}
	}

	for _, s := range p.registry.Map() {
		if s.AdditionalProperties == true && len(s.Properties) > 0 {
			s.AdditionalProperties = nil // the default, which generated clients take for a member with any name
		}
	}

	text, err := json.MarshalIndent(p.openapi, "", "  ")
	if err != nil {
		panic("operation: document: " + err.Error())
	}

	return append(text, '\n')
}

// Chapter begins a chapter in the document: a tag for the operations registered until the next one.
// rules is the heading in docs/api.md with the chapter's rules.
func (p *Pipeline) Chapter(name, rules, description string) {
	p.chapter = name
	p.openapi.Tags = append(p.openapi.Tags, &huma.Tag{
		Name: name, Description: description + " [Rules](/docs?api=api#api/description/" + rules + ").",
	})
}

// Schema is the schema that a type gives itself by a method Schema(Registry) *Schema.
type Schema = huma.Schema

// Registry has the schemas that refer to each other.
type Registry = huma.Registry

// Types for a [Schema].
const (
	TypeObject  = huma.TypeObject
	TypeBoolean = huma.TypeBoolean
	TypeInteger = huma.TypeInteger
)

// DescribeAs gives the type T the schema of the type S. It precedes the operations that use T.
func DescribeAs[T, S any](p *Pipeline) {
	p.registry.RegisterTypeAlias(reflect.TypeFor[T](), reflect.TypeFor[S]())
}
