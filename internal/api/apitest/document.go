package apitest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is a server's compiled OpenAPI document, which validates responses.
type document struct {
	operations map[string][]operation // by method
	responses  map[string]any         // that operations share, by reference
	compiler   *jsonschema.Compiler

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema // compiled ones, by JSON pointer
}

type operation struct {
	id, path  string
	segments  []string
	responses map[string]any
}

// documentURL is the schemas' base URI; it is never fetched.
const documentURL = "https://example.com/openapi.json"

// cachedDocument caches the document from the test binary's first server. It is the same for all
// servers, and slow to compile.
var cachedDocument struct {
	sync.Mutex
	*document
}

func readDocument(t testing.TB, url string) *document {
	t.Helper()

	cachedDocument.Lock()
	defer cachedDocument.Unlock()

	if cachedDocument.document != nil {
		return cachedDocument.document
	}

	res, err := client.Get(url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	d, err := parseDocument(text)
	if err != nil {
		t.Fatal(err)
	}

	cachedDocument.document = d
	return d
}

func parseDocument(text []byte) (*document, error) {
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}

	d := &document{operations: map[string][]operation{}, responses: map[string]any{},
		compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()

	object := root.(map[string]any)
	closeSchemas(object["paths"])
	closeSchemas(object["components"])

	for name, response := range object["components"].(map[string]any)["responses"].(map[string]any) {
		d.responses["#/components/responses/"+name] = response
	}

	for path, item := range object["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			o := op.(map[string]any)
			d.operations[strings.ToUpper(method)] = append(d.operations[strings.ToUpper(method)], operation{
				id: o["operationId"].(string), path: path,
				segments: strings.Split(path, "/"), responses: o["responses"].(map[string]any)})
		}
	}

	return d, d.compiler.AddResource(documentURL, root)
}

// closeSchemas forbids additional properties in every object schema except failure metadata.
func closeSchemas(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			closeSchemas(item)
		}
	case map[string]any:
		properties, ok := v["properties"].(map[string]any)
		if _, failure := properties["requestId"]; ok && !failure {
			if _, declared := v["additionalProperties"]; !declared || v["additionalProperties"] == true {
				v["additionalProperties"] = false
			}
		}

		for _, item := range v {
			closeSchemas(item)
		}
	}
}

// findOperation returns a request's operation.
func (d *document) findOperation(method, path string) (operation, bool) {
	segments := strings.Split(path, "/")
	best, score := operation{}, -1
	for _, o := range d.operations[method] {
		if s, ok := o.matches(segments); ok && s > score {
			best, score = o, s
		}
	}

	return best, score >= 0
}

// matches reports whether the operation's path matches the segments, and how many literally.
func (o operation) matches(segments []string) (literal int, ok bool) {
	rest := o.id == "readFile" || o.id == "writeFile" // the last parameter takes the remaining path
	if len(segments) != len(o.segments) && !(rest && len(segments) > len(o.segments)) {
		return 0, false
	}

	for i, s := range o.segments {
		switch {
		case strings.HasPrefix(s, "{"):
		case s == segments[i]:
			literal++
		default:
			return 0, false
		}
	}

	return literal, true
}

// checkReply fails the test unless the document declares the response for the request.
func (d *document) checkReply(t testing.TB, r *http.Request, reply *Reply) {
	t.Helper()

	if reply.Header.Get("X-Request-Id") == "" {
		t.Errorf("%s: the response has no X-Request-Id", reply.request)
	}

	o, ok := d.findOperation(r.Method, r.URL.EscapedPath())
	if !ok {
		return // not an operation: the test asserts the response
	}

	status := fmt.Sprint(reply.Status)
	response, declared := o.responses[status].(map[string]any)
	if !declared {
		t.Fatalf("%s: %s does not declare status %s\n%s", reply.request, o.id, status, reply.Body)
	}

	recordStatus(o.id, reply.Status)

	pointer := fmt.Sprintf("#/paths/%s/%s/responses/%s",
		strings.ReplaceAll(o.path, "/", "~1"), strings.ToLower(r.Method), status)
	if ref, shared := response["$ref"].(string); shared {
		pointer, response = ref, d.responses[ref].(map[string]any)
	}

	content, _ := response["content"].(map[string]any)
	if _, isJSON := content["application/json"]; !isJSON {
		return
	}

	schema, err := d.schema(pointer + "/content/application~1json/schema")
	if err != nil {
		t.Fatalf("%s: compile the schema: %v", o.id, err)
	}
	if err := schema.Validate(reply.json); err != nil {
		t.Fatalf("%s: the response violates the OpenAPI document: %v\n%s", reply.request, err, reply.Body)
	}
}

// schema returns the compiled schema at a JSON pointer. The compiler's own lookup for a compiled
// schema takes longer than validating most responses.
func (d *document) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if s, ok := d.schemas[pointer]; ok {
		return s, nil
	}

	s, err := d.compiler.Compile(documentURL + pointer)
	if err == nil {
		d.schemas[pointer] = s
	}

	return s, err
}

var (
	seenMu sync.Mutex
	seen   = map[string]bool{}
)

// recordStatus records that an operation has answered with a status.
func recordStatus(id string, status int) {
	seenMu.Lock()
	defer seenMu.Unlock()

	seen[fmt.Sprintf("%s %d", id, status)] = true
}

// MissingResponses returns the declared responses, each an operation ID and a status, that no
// request from this test binary has provoked. text is the OpenAPI document. No request provokes a
// fault of the server: of an operation that declares 503 too, the 500 need not be provoked.
func MissingResponses(text []byte) ([]string, error) {
	d, err := parseDocument(text)
	if err != nil {
		return nil, err
	}

	seenMu.Lock()
	defer seenMu.Unlock()

	var missing []string
	for _, operations := range d.operations {
		for _, o := range operations {
			for status := range o.responses {
				if _, unavailable := o.responses["503"]; unavailable && status == "500" {
					continue
				}
				if key := o.id + " " + status; !seen[key] {
					missing = append(missing, key)
				}
			}
		}
	}

	slices.Sort(missing)
	return missing, nil
}
