package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/config"
)

// finder finds the UUIDs of things by their names.
type finder struct {
	document *description
	client   *client.Client
}

// maxNames bounds the things that are searched for a name.
const (
	namesPerPage = 100
	maxNamePages = 100
)

// errNoProject is the failure of a command that needs a project.
var errNoProject = fmt.Errorf("%w: no project selected; use --project, %s or socle use",
	errUsage, config.ClientProject)

// selectProject replaces the name of the client's project by its UUID.
func (f finder) selectProject(ctx context.Context) error {
	if f.client.Project == "" {
		return errNoProject
	}

	id, err := f.find(ctx, "project", schema{Format: "uuid"}, f.client.Project)
	f.client.Project = id

	return err
}

// stem returns the kind of thing that a parameter or member refers to: container for
// container_uuid; "" if it holds no UUIDs.
func stem(name string) string {
	words := split(name)
	if last := words[len(words)-1]; len(words) < 2 || (last != "uuid" && last != "uuids") {
		return ""
	}

	return strings.Join(words[:len(words)-1], "-")
}

// find returns the UUID of the thing that text names. A text that needs no UUID is returned as is.
func (f finder) find(ctx context.Context, kind string, s schema, text string) (string, error) {
	if s.Format != "uuid" || kind == "" || uuid.Validate(text) == nil || text == "null" {
		return text, nil
	}

	path := "/" + plural(kind)
	if kind == "user" {
		path = "/admin/users"
	}

	const project = "/projects/{projectUUID}"
	if _, ok := f.document.lister(project + path); ok && f.client.Project != "" {
		return f.search(ctx, project+path, "/projects/"+url.PathEscape(f.client.Project)+path, kind, text)
	}

	return f.search(ctx, path, path, kind, text)
}

// findIn is find for a path parameter. path precedes it, template is the same in the document.
func (f finder) findIn(ctx context.Context, template, path string, p parameter, text string) (string, error) {
	if p.Schema.Format != "uuid" || uuid.Validate(text) == nil {
		return text, nil
	}

	kind := stem(p.Name)
	if _, ok := f.document.lister(template); !ok {
		return f.find(ctx, kind, p.Schema, text)
	}

	return f.search(ctx, template, path, kind, text)
}

// lister returns the list operation of a path. The names of its parameters may differ.
func (d *description) lister(template string) (operation, bool) {
	for _, s := range d.Operations {
		if s.Method == http.MethodGet && strings.HasPrefix(s.ID, "list") && unnamed(s.Path) == unnamed(template) {
			return s.operation(), true
		}
	}

	return operation{}, false
}

var parameterName = regexp.MustCompile(`\{[^}]*\}`)

// unnamed returns a path without the names of its parameters.
func unnamed(path string) string { return parameterName.ReplaceAllString(path, "{}") }

// search returns the UUID of the only thing of a list with a name.
func (f finder) search(ctx context.Context, template, path, kind, name string) (string, error) {
	kind = strings.ReplaceAll(kind, "-", " ")
	o, ok := f.document.lister(template)
	if !ok {
		return "", fmt.Errorf("%w: the %s must be a UUID, not %q", errUsage, kind, name)
	}

	items, err := f.list(ctx, o, path, name)
	if err != nil {
		return "", err
	}

	var found []string
	for _, item := range items {
		id, ok := item.value("uuid").(string)
		if !ok { // a member of an organization
			id, ok = item.value("userUuid").(string)
		}

		if ok && slices.Contains(namesOf(item), name) {
			found = append(found, id)
		}
	}

	_, noun := words(o.ID)
	switch len(found) {
	case 0:
		hint := "list them with: socle " + listCommand(o, template, path)
		if o.takes("query", "search") {
			items, _ = f.list(ctx, o, path, "") // without a list there is only the hint
		}
		if near := nearestName(name, items); near != "" {
			hint = fmt.Sprintf("did you mean %q? ", near) + hint
		}

		return "", fmt.Errorf("there is no %s %q; %s", kind, name, hint)
	case 1:
		return found[0], nil
	}

	return "", fmt.Errorf("%w: %d %s are named %q; use a UUID:\n%s", errUsage, len(found), noun, name,
		strings.Join(found, "\n"))
}

// listCommand returns the words of the command that lists the things below a path. template is the
// same in the document.
func listCommand(o operation, template, path string) string {
	verb, noun := words(o.ID)
	command := noun + " " + verb
	values := strings.Split(path, "/")
	for i, part := range strings.Split(template, "/") {
		if strings.HasPrefix(part, "{") && part != "{projectUUID}" {
			command += " " + values[i]
		}
	}

	return command
}

// list returns the entities of a list, only the matching ones if the operation searches by name.
func (f finder) list(ctx context.Context, o operation, path, name string) ([]record, error) {
	c := *f.client
	if o.takes("header", "X-Project") {
		if err := (finder{f.document, &c}).selectProject(ctx); err != nil {
			return nil, err
		}
	}

	query := url.Values{}
	if o.takes("query", "search") && name != "" {
		query.Set("search", name)
	}
	if o.takes("query", "limit") {
		query.Set("limit", strconv.Itoa(namesPerPage))
	}

	var all []record
	for page := 1; ; page++ {
		if page > 1 {
			query.Set("page", strconv.Itoa(page))
		}

		reply, err := c.Do(ctx, client.Request{Method: http.MethodGet, Path: path, Query: query})
		if err != nil {
			return nil, explain(err)
		}

		p, err := newReply(reply)
		if err != nil {
			return nil, err
		}

		items, _ := p.content.([]any)
		for _, item := range items {
			if o, ok := item.(record); ok {
				all = append(all, o)
			}
		}

		if len(items) < namesPerPage || page == maxNamePages || !o.takes("query", "page") {
			return all, nil
		}
	}
}

// namesOf returns the names by which people know a thing.
func namesOf(o record) []string {
	var all []string
	for _, member := range []string{"name", "label", "fullFileName", "username", "email", "kid"} {
		name, _ := o.value(member).(string)
		if s, _ := o.value("schema").(string); member == "name" && s != "" && s != "public" {
			name = s + "." + name
		}

		if name != "" {
			all = append(all, name)
		}
	}

	return all
}

// nearestName returns the name of an entity that differs from another name by case or a typing
// mistake; "" without one.
func nearestName(name string, items []record) string {
	lower, names := strings.ToLower(name), map[string]string{}
	for _, item := range items {
		for _, n := range namesOf(item) {
			names[strings.ToLower(n)] = n
		}
	}
	if len(names) == 0 {
		return ""
	}

	near := config.Nearest(lower, slices.Sorted(maps.Keys(names)))
	if levenshtein.ComputeDistance(lower, near) > max(1, len(name)/3) {
		return ""
	}

	return names[near]
}

// completeArg completes an argument by the names of the things that are there.
func (r *remote) completeArg(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) >= len(r.args) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	template, _, _ := strings.Cut(r.Path, "/{"+r.args[len(args)]+"}")
	return r.completeNames(cmd, template, stem(r.args[len(args)]), args)
}

// completeNames returns the names of a list, or of all things of a kind.
func (r *remote) completeNames(
	cmd *cobra.Command, template, kind string, args []string,
) ([]string, cobra.ShellCompDirective) {
	c, err := r.e.client(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	f := finder{r.document, c}
	if r.project {
		_ = f.selectProject(cmd.Context()) // without a project the list fails
	}

	path, err := r.path(cmd.Context(), f, args)
	o, ok := r.document.lister(template)
	if !ok {
		path = "/" + plural(kind)
		o, ok = r.document.lister(path)
	}

	if err != nil || !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	items, _ := f.list(cmd.Context(), o, path, "")

	var names []string
	for _, item := range items {
		if known := namesOf(item); len(known) > 0 {
			names = append(names, known[0])
		}
	}

	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeFlag completes a flag by its allowed values, or by the names of the things that it
// refers to.
func (r *remote) completeFlag(cmd *cobra.Command, flag *pflag.Flag, name string, s schema) {
	var complete cobra.CompletionFunc
	kind := stem(name)
	if name == "reference_table" {
		kind = "table"
	}

	switch {
	case r.body.Properties[name].Format == "binary":
		return // a file
	case isRole(name):
		complete = cobra.FixedCompletions(roleNames(s.Minimum), cobra.ShellCompDirectiveNoFileComp)
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprint(v))
		}

		complete = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	case kind != "":
		complete = func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return r.completeNames(cmd, "", kind, nil)
		}
	default:
		complete = cobra.NoFileCompletions
	}

	_ = cmd.RegisterFlagCompletionFunc(flag.Name, complete) // the flag exists
}
