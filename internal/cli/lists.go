package cli

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// list is how people see a list whose entries have more members than a line holds: columns by their
// meaning. --json shows all members.
type list struct {
	columns []string
	minor   []string // columns that a narrow terminal leaves out, the last one first
	derive  func(record) record
}

// lists has the lists by operation.
var lists = map[string]list{
	"listRequests": {columns: []string{"id", "at", "status", "method", "code", "duration", "rows", "by", "request"},
		minor: []string{"duration", "rows", "by"}, derive: deriveRequest},
	"listAudit": {columns: []string{"at", "actor", "action", "target", "created"},
		minor: []string{"created"}, derive: deriveAudit},
	"listInstanceAudit": {columns: []string{"at", "actor", "action", "project", "target", "created"},
		minor: []string{"project", "created"}, derive: deriveAudit},
	"listBackups": {columns: []string{"uuid", "startedAt", "status", "size", "provenAt", "error"},
		minor: []string{"provenAt"}},
	"listRestores": {columns: []string{"uuid", "createdAt", "target", "status", "keptUntil", "error"},
		minor: []string{"keptUntil"}},
	"listMails": {columns: []string{"uuid", "createdAt", "kind", "recipient", "subject", "error"},
		minor: []string{"subject", "error", "createdAt"}},
	"listSessions": {columns: []string{"uuid", "lastUsedAt", "address", "isCurrent", "userAgent"},
		minor: []string{"userAgent", "isCurrent"}},
	"listEndUsers": {columns: []string{"uuid", "email", "phone", "createdAt", "lastSignInAt", "bannedUntil"},
		minor: []string{"bannedUntil", "createdAt"}},
	"listTokens": {columns: []string{"uuid", "name", "roleId", "expiresAt", "lastUsedAt", "hint"},
		minor: []string{"hint", "lastUsedAt"}},
	"listInvitations": {columns: []string{"uuid", "email", "roleId", "sentAt", "expiresAt"},
		minor: []string{"sentAt"}},
	"listForms": {columns: []string{"uuid", "name", "state", "totalResponses", "createdAt", "link"},
		minor: []string{"link", "createdAt"}},
	"listContainers": {columns: []string{"uuid", "name", "isPublic", "totalFiles", "maxFileSize", "url"},
		minor: []string{"url", "maxFileSize"}},
}

// print prints entries as a table. Columns that are empty in all of them are left out.
func (l list) print(w io.Writer, items []any) error {
	rows := make([]record, len(items))
	for i, item := range items {
		rows[i], _ = item.(record)
		if l.derive != nil {
			rows[i] = l.derive(rows[i])
		}
	}

	g := grid{rows: make([][]string, len(rows))}
	for _, c := range l.columns {
		filled, number := false, true
		cells := make([]string, len(rows))
		for i, o := range rows {
			v := o.value(c)
			_, numeric := v.(json.Number)
			cells[i] = cell(c, v)
			filled, number = filled || cells[i] != "", number && (v == nil || numeric)
		}

		if !filled {
			continue
		}

		head := strings.ToUpper(title(c))
		g.heads, g.numbers = append(g.heads, head), append(g.numbers, number)
		for i := range rows {
			g.rows[i] = append(g.rows[i], cells[i])
		}
		if slices.Contains(l.minor, c) {
			g.minor = append(g.minor, head)
		}
	}

	slices.SortStableFunc(g.minor, func(a, b string) int { return l.rank(a) - l.rank(b) })
	return g.print(w)
}

// rank returns the position of a head among the minor columns.
func (l list) rank(head string) int {
	return slices.IndexFunc(l.minor, func(c string) bool { return strings.ToUpper(title(c)) == head })
}

// shortID is the number of last digits of a UUID that identify a request to people.
const shortID = 8

// deriveRequest returns a request in a line: its target with the query, and its caller by name.
func deriveRequest(o record) record {
	text := func(name string) string {
		s, _ := o.value(name).(string)
		return s
	}

	id, target := text("uuid"), text("route")
	if query := text("query"); query != "" {
		target += "?" + query
	}

	by := text("userName")
	if by == "" {
		by = text("keyName")
	}
	if by == "" {
		by = text("role")
	}
	if user := text("endUserUuid"); user != "" {
		by = strings.TrimSpace(by + " " + short(user))
	}

	return append(slices.Clone(o), member{"id", short(id)}, member{"code", o.value("errorCode")},
		member{"by", by}, member{"request", target})
}

// deriveAudit returns an entry of an audit log in a line: who, what, and on what, with names in the
// place of UUIDs.
func deriveAudit(o record) record {
	var derived record
	for _, m := range o {
		switch m.name {
		case "actor", "project":
			if name, _ := o.value(m.name + "Name").(string); name != "" {
				m.value = name
			}
		case "target":
			m.value = nameProject(o, m.value)
		case "created":
			if id, ok := m.value.(string); ok && uuid.Validate(id) == nil {
				m.value = short(id)
			}
		}

		derived = append(derived, m)
	}

	return derived
}

// nameProject returns the path of an entry with the project's name, and other UUIDs shortened.
func nameProject(o record, target any) string {
	path, _ := target.(string)
	segments := strings.Split(path, "/")
	for i, s := range segments {
		name, _ := o.value("projectName").(string)
		switch {
		case uuid.Validate(s) != nil:
		case s == o.value("project") && name != "":
			segments[i] = name
		default:
			segments[i] = short(s)
		}
	}

	return strings.Join(segments, "/")
}

// short returns the last digits of a UUID. The first ones are its time and the same for many.
func short(id string) string { return id[max(0, len(id)-shortID):] }
