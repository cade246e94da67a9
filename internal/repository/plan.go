package repository

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Change is a value that a push changes. An empty From is one that was absent, an empty To one that
// is removed.
type Change struct {
	What string `json:"what"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Update is a request that brings settings to what the configuration says.
type Update struct {
	Changes   []Change
	Body      map[string]any // operation members; none: nothing to change
	Unchanged int            // settings that are as the configuration says
}

// PlanSettings compares settings as the API answers them with a configuration's. Without current
// settings, all that the configuration says changes.
func PlanSettings(current map[string]any, settings []Setting) (Update, error) {
	before := map[string]any{}
	for name, value := range current {
		before[snake(name)] = value
	}

	var after map[string]any
	if err := copyJSON(before, &after); err != nil {
		return Update{}, err
	}

	u := Update{Body: map[string]any{}}
	for _, s := range settings {
		var value any
		if err := copyJSON(s.Value, &value); err != nil {
			return Update{}, err
		}

		put(after, s.Member, value)
		if current == nil && value != nil {
			member := strings.Join(s.Member, ".")
			u.Changes = append(u.Changes, listed(member, value)...)
		}
		if equal(at(before, s.Member), value) {
			u.Unchanged++
		}
	}

	for _, name := range slices.Sorted(maps.Keys(after)) {
		changes := compare(name, before[name], after[name])
		if len(changes) == 0 {
			continue
		}

		if current != nil {
			u.Changes = append(u.Changes, changes...)
		}
		u.Body[name] = after[name]
		if after[name] == nil {
			u.Body[name] = map[string]any{}
		}
	}

	return u, nil
}

// onByDefault are settings that a new project has on: false changes them.
var onByDefault = []string{"sign_up", "confirm_email"}

// listed returns a value, or each member of an object, as changes to a new project, whose settings
// are unknown. What asks for nothing is no change.
func listed(path string, value any) []Change {
	object, ok := value.(map[string]any)
	if !ok {
		if isZero(value) && !slices.Contains(onByDefault, path) {
			return nil
		}
		return []Change{{What: path, To: show(path, value)}}
	}

	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(object)) {
		changes = append(changes, listed(path+"."+name, object[name])...)
	}

	return changes
}

// copyJSON copies a value as JSON reads it back.
func copyJSON(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}

	return json.Unmarshal(text, to)
}

// snake returns a request's member name for a response's: site_url for siteUrl.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}

	return b.String()
}

// at returns an object's member, or nil.
func at(object map[string]any, path []string) any {
	for _, name := range path[:len(path)-1] {
		object, _ = object[name].(map[string]any)
	}

	return object[path[len(path)-1]]
}

// put sets an object's member. A zero value creates no object around it, nil removes it.
func put(object map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		inner, ok := object[name].(map[string]any)
		if !ok {
			if isZero(value) {
				return
			}
			inner = map[string]any{}
			object[name] = inner
		}
		object = inner
	}

	name := path[len(path)-1]
	if _, ok := object[name]; value != nil || (ok && len(path) == 1) {
		object[name] = value
		return
	}

	delete(object, name)
}

// isZero reports whether a JSON value is as good as absent.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case float64:
		return v == 0
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, inner := range v {
			if !isZero(inner) {
				return false
			}
		}
		return true
	}

	return false
}

// equal reports whether two JSON values are the same, or both as good as absent.
func equal(a, b any) bool { return len(compare("", a, b)) == 0 }

// compare returns the differences between two JSON values, one for each member of objects.
func compare(path string, from, to any) []Change {
	if isZero(from) && isZero(to) {
		return nil
	}

	before, isBefore := from.(map[string]any)
	after, isAfter := to.(map[string]any)
	if (isBefore || isZero(from)) && (isAfter || isZero(to)) && (isBefore || isAfter) {
		all := maps.Clone(before)
		if all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, after)

		var changes []Change
		for _, name := range slices.Sorted(maps.Keys(all)) {
			changes = append(changes, compare(path+"."+name, before[name], after[name])...)
		}

		return changes
	}

	a, _ := json.Marshal(from) // JSON values
	b, _ := json.Marshal(to)
	if string(a) == string(b) {
		return nil
	}

	change := Change{What: path, From: show(path, from), To: show(path, to)}
	if lists := difference(from, to); lists != "" {
		change.From, change.To = "", lists
	}

	return []Change{change}
}

// difference returns the items that one list has and another lacks, "" unless both have items.
func difference(from, to any) string {
	before, _ := from.([]any)
	after, _ := to.([]any)
	if len(before) == 0 || len(after) == 0 {
		return ""
	}

	lacks := func(list []any, item any) bool { return !slices.Contains(list, item) }
	var parts []string
	for _, item := range after {
		if lacks(before, item) {
			parts = append(parts, fmt.Sprint("+", item))
		}
	}
	for _, item := range before {
		if lacks(after, item) {
			parts = append(parts, fmt.Sprint("-", item))
		}
	}

	return strings.Join(parts, " ") // "": another order
}

// show returns a value for people. Whoever knows a test number's code signs in, so it is not shown.
func show(path string, v any) string {
	const long = 80 // characters
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		v = strings.TrimSpace(v)
		lines := strings.Count(v, "\n") + 1
		switch {
		case strings.HasPrefix(path, "sms.test_numbers."):
			return "a code"
		case lines > 1:
			return fmt.Sprintf("%d lines", lines)
		case len([]rune(v)) > long:
			return fmt.Sprintf("%d characters", len([]rune(v)))
		case v == "":
			return `""`
		}
		return v
	case []any:
		if len(v) == 0 {
			return "none"
		}

		items := make([]string, len(v))
		for i, item := range v {
			items[i] = fmt.Sprint(item)
		}
		return strings.Join(items, ", ")
	}

	text, _ := json.Marshal(v) // a JSON value
	return string(text)
}

// Container is a container as a project has it.
type Container struct {
	UUID     string   `json:"uuid"`
	Name     string   `json:"name"`
	IsPublic bool     `json:"isPublic"`
	MaxSize  int64    `json:"maxFileSize"`
	Types    []string `json:"-"`
}

// PlanBucket compares a bucket with the container that has its name; nil: there is none.
func PlanBucket(b Bucket, c *Container) (Update, error) {
	var settings []Setting
	if b.Public != nil {
		settings = append(settings, Setting{Member: []string{"is_public"}, Value: *b.Public})
	}
	if b.MaxSize != nil {
		settings = append(settings, Setting{Member: []string{"max_file_size"}, Value: *b.MaxSize})
	}
	if b.Types != nil {
		settings = append(settings, Setting{Member: []string{"allowed_mime_types"}, Value: *b.Types})
	}

	current := map[string]any{}
	if c != nil {
		columns := map[string]any{"is_public": c.IsPublic, "max_file_size": c.MaxSize, "allowed_mime_types": c.Types}
		if err := copyJSON(columns, &current); err != nil {
			return Update{}, err
		}
	}

	return PlanSettings(current, settings)
}
