package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// Choose returns the function that accepts arguments of these names. raw is the type of a body that
// can be a single unnamed argument: json, text, xml or bytea. It is "" if the request has no such
// body.
func Choose(c *catalog.Catalog, name catalog.Name, names []string, raw string) (*catalog.Function, error) {
	var found []*catalog.Function
	whole := raw != "" && raw != "json" // the body has no member names
	for _, f := range c.Functions[name] {
		if !whole && accepts(f, names, raw == "json") {
			found = append(found, f)
		}
	}

	if len(found) == 0 && raw != "" {
		for _, f := range c.Functions[name] {
			if acceptsBody(f, raw) {
				found = append(found, f)
			}
		}
	}

	switch len(found) {
	case 0:
		return nil, noFunction(c, name, names, raw)
	case 1:
		return found[0], nil
	}

	return nil, manyFunctions(found)
}

// ChooseJSON is [Choose] for a JSON body. Its members are the arguments unless columns are given. A
// body without members is accepted by a function that takes the whole body.
func ChooseJSON(c *catalog.Catalog, name catalog.Name, columns []string, body []byte) (*catalog.Function, error) {
	if columns != nil {
		return Choose(c, name, columns, "json")
	}

	names, err := Keys(body)
	switch {
	case err == nil:
		return Choose(c, name, names, "json")
	case err != errKeys:
		return nil, err
	}

	var found []*catalog.Function
	for _, f := range c.Functions[name] {
		if acceptsBody(f, "json") {
			found = append(found, f)
		}
	}

	switch len(found) {
	case 0:
		return nil, err
	case 1:
		return found[0], nil
	}

	return nil, manyFunctions(found)
}

// accepts reports whether a function accepts arguments of exactly these names. The only parameter
// of a function may be unnamed: a JSON body with a member without a name is its whole argument, and
// without arguments its default applies.
func accepts(f *catalog.Function, names []string, json bool) bool {
	unnamed := len(f.Params) == 1 && (json || len(names) == 0)
	for i := range f.Params {
		p := &f.Params[i]
		if p.Name == "" && !unnamed || p.Required && !slices.Contains(names, p.Name) {
			return false
		}
	}

	for _, n := range names {
		if !slices.ContainsFunc(f.Params, func(p catalog.Parameter) bool { return p.Name == n }) {
			return false
		}
	}

	return true
}

// acceptsBody reports whether a function's only parameter is unnamed and of the body's type.
func acceptsBody(f *catalog.Function, raw string) bool {
	if len(f.Params) != 1 || f.Params[0].Name != "" {
		return false
	}
	return f.Params[0].Type == raw || raw == "json" && f.Params[0].Type == "jsonb"
}

func manyFunctions(found []*catalog.Function) error {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b *catalog.Function) int { return cmp.Compare(len(a.Params), len(b.Params)) })
	texts := make([]string, len(found))
	for i, f := range found {
		params := make([]string, len(f.Params))
		for j, p := range f.Params {
			params[j] = p.Name + " => " + p.Type
		}

		texts[i] = f.Schema + "." + f.Name.Name + "(" + strings.Join(params, ", ") + ")"
	}

	return &query.Error{Status: 300, Code: "PGRST203",
		Message: "Could not choose the best candidate function between: " + strings.Join(texts, ", "),
		Hint: "Try renaming the parameters or the function itself in the database so function overloading " +
			"can be resolved"}
}

// NoFunction returns the error for a function name that no function has, regardless of arguments.
func NoFunction(c *catalog.Catalog, name catalog.Name) error { return noFunction(c, name, nil, "") }

func noFunction(c *catalog.Catalog, name catalog.Name, names []string, raw string) error {
	function := name.Schema + "." + name.Name
	list := enumerate(names)
	message, details := "Could not find the function "+function, "Searched for the function "+function
	whole := raw != "" && raw != "json"
	switch {
	case whole:
		details += " with a single unnamed " + raw + " parameter"
	case len(names) == 0:
		message += " without parameters"
		details += " without parameters"
	case len(names) == 1:
		message += "(" + list + ")"
		details += " with parameter " + list
	default:
		message += "(" + list + ")"
		details += " with parameters " + list
	}

	if raw == "json" {
		details += " or with a single unnamed json/jsonb parameter"
	}

	failure := &query.Error{Status: 404, Code: "PGRST202", Message: message + " in the schema cache",
		Details: details + ", but no matches were found in the schema cache."}

	if !whole {
		failure.Hint = callHint(c, name, list)
	}

	return failure
}

// maxNamesBytes is the maximum length of argument names in a message, in bytes.
const maxNamesBytes = 1 << 10

// enumerate returns sorted names joined with commas. It omits names beyond maxNamesBytes.
func enumerate(names []string) string {
	var text strings.Builder
	for i, name := range slices.Sorted(slices.Values(names)) {
		if i > 0 {
			text.WriteString(", ")
		}

		if text.Len()+len(name) > maxNamesBytes {
			text.WriteString("…")
			break
		}

		text.WriteString(name)
	}

	return text.String()
}

// callHint suggests a function with a similar name, or an overload with similar parameters.
func callHint(c *catalog.Catalog, name catalog.Name, names string) any {
	if overloads := c.Functions[name]; len(overloads) > 0 {
		var lists []string
		for _, f := range overloads {
			lists = append(lists, parameters(f))
		}

		if like := mostSimilar(lists, "("+names+")", minPublicLikeness); like != "" {
			return "Perhaps you meant to call the function " + name.Schema + "." + name.Name + like
		}

		return nil
	}

	var others []string
	for n := range c.Functions {
		if n.Schema == name.Schema {
			others = append(others, n.Name)
		}
	}

	like := mostSimilar(others, name.Name, minLikeness)
	if like == "" {
		return nil
	}

	return "Perhaps you meant to call the function " + name.Schema + "." + like
}

// parameters joins the names of a function's parameters for comparison by likeness.
func parameters(f *catalog.Function) string {
	names := make([]string, len(f.Params))
	for i, p := range f.Params {
		names[i] = p.Name
	}

	slices.Sort(names)
	return "(" + strings.Join(names, ", ") + ")"
}
