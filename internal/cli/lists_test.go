package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestListedColumns: every column of a list is a member of its entries, or derived, and every minor
// one a column.
func TestListedColumns(t *testing.T) {
	t.Parallel()

	d, err := describe()
	if err != nil {
		t.Fatal(err)
	}

	for id, l := range lists {
		if !slices.ContainsFunc(d.Operations, func(s stored) bool { return s.ID == id }) {
			t.Errorf("there is no operation %s", id)
		}
		for _, c := range l.minor {
			if !slices.Contains(l.columns, c) {
				t.Errorf("%s: %s is no column", id, c)
			}
		}
	}
}

// TestPrintList prints lists on terminals of several widths: names instead of UUIDs, one line an
// entry, and first the columns that say most.
func TestPrintList(t *testing.T) {
	t.Parallel()

	const id, project = "01a21ab0-af8c-7ac3-b413-e83e81a2f19e", "01a21ab0-77c3-7deb-83bf-f536a05d7216"
	for _, c := range []struct{ id, items, want string }{
		{"listRequests", `[{"uuid": "` + id + `", "at": "2026-11-27T01:00:00Z", "status": 403, "method": "GET", "route": "/rest/v1/books",
			"query": "a=eq.…", "errorCode": "42501", "duration": 1200, "rows": null, "role": "authenticated", "keyName": null,
			"endUserUuid": "` + project + `"}]`,
			"ID AT STATUS METHOD CODE DURATION BY REQUEST; 81a2f19e TIME 403 GET 42501 1.2ms authenticated a05d7216 /rest/v1/books?a=eq.…"},
		{"listAudit", `[{"seq": 1, "at": "2026-11-27T01:00:00Z", "action": "createKey", "actor": "` + id + `", "actorName": "ada",
			"target": "/projects/` + project + `/keys/` + id + `", "project": "` + project + `", "projectName": "Shop", "created": "` + id + `"}]`,
			"AT ACTOR ACTION TARGET CREATED; TIME ada createKey /projects/Shop/keys/81a2f19e 81a2f19e"},
		{"listMails", `[{"uuid": "` + id + `", "createdAt": "2026-11-27T01:00:00Z", "kind": "recovery", "recipient": "a@b.c", "html": "<p>", "text": "x"}]`,
			"UUID CREATED AT KIND RECIPIENT; " + id + " TIME recovery a@b.c"},
	} {
		var items []any
		v, err := decode(json.RawMessage(c.items))
		if err != nil {
			t.Fatal(err)
		}
		items = v.([]any)

		var out bytes.Buffer
		if err := lists[c.id].print(&out, items); err != nil {
			t.Fatal(err)
		}

		at := time.Date(2026, 11, 27, 1, 0, 0, 0, time.UTC).Local().Format("2006-01-02 15:04:05")
		text := strings.ReplaceAll(strings.TrimSpace(out.String()), at, "TIME")
		got := strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", " ; ")), " ")
		if got = strings.ReplaceAll(got, " ; ", "; "); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.id, got, c.want)
		}
	}
}

func TestMinorColumnsGiveWay(t *testing.T) {
	t.Parallel()

	g := grid{heads: []string{"A", "B", "C"}, rows: [][]string{{"a", "b", "c"}}, numbers: make([]bool, 3),
		minor: []string{"B", "A"}}
	if g = g.without("A"); !slices.Equal(g.heads, []string{"B", "C"}) || !slices.Equal(g.rows[0], []string{"b", "c"}) ||
		!slices.Equal(g.minor, []string{"B"}) {
		t.Errorf("got %+v", g)
	}
}

// TestUnseen: a request is printed once, however often the log lists it, the oldest first.
func TestUnseen(t *testing.T) {
	t.Parallel()

	now, seen := time.Now(), map[string]time.Time{}
	items := func(ids ...string) (all []any) {
		for _, id := range ids {
			all = append(all, record{{"uuid", id}})
		}

		return all
	}
	ids := func(records []record) (all []string) {
		for _, o := range records {
			all = append(all, o.value("uuid").(string))
		}

		return all
	}

	for _, step := range []struct{ listed, want []string }{
		{[]string{"b", "a"}, []string{"a", "b"}},
		{[]string{"c", "b", "a"}, []string{"c"}},
		{[]string{"c", "late", "b"}, []string{"late"}},
		{nil, nil},
	} {
		if got := ids(unseen(seen, items(step.listed...), now)); !slices.Equal(got, step.want) {
			t.Errorf("got %v, want %v", got, step.want)
		}
	}

	if unseen(seen, nil, now.Add(time.Hour)); len(seen) != 0 {
		t.Errorf("%d old requests are remembered", len(seen))
	}
}

func TestRoleNumber(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{"developer": "4", "Owner": "2", "3": "3", "9": "9", "boss": "",
		"administrator": ""} {
		if got, err := roleNumber(text, 2); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}
