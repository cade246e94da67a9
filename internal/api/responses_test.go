package api_test

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestResponses covers the stored responses to the forms of one project.
func TestResponses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, a *apitest.API)
	}{
		{"list", listResponses},
		{"delete", deleteResponse},
		{"export", exportResponses},
		{"statistics", getFormStatistics},
		{"partial", partialResponse},
		{"expired", partialResponseExpires},
		{"conditional", conditionalForms},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, a.WithT(t)) })
	}
}

func listResponses(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a,
		`{"label": "name", "type": "text"}, {"label": "tags", "type": "multiselect", "options": "red,green"}, {"label": "age", "type": "number"}`, "")

	other := openSurvey(t, a, `{"label": "name", "type": "text"}`, "")
	other.answer(`{"name": "other"}`).Want(201)

	for _, name := range []string{
		`"Ann"`, `"100%"`, `"100 per cent"`, `"a_b"`, `"axb"`, `"back\\slash"`, `"É😀"`, `"it's"`,
	} {
		f.answer(`{"name": ` + name + `, "tags": ["red"], "age": 41}`).Want(201)
	}

	f.Post(f.path+"/responses", f.answers(`{"answers": {"name": "begun"}, "partial": true}`)).Want(201)

	names := func(query string) string {
		t.Helper()

		var all []string
		for _, item := range f.Get(f.path + "/responses?" + query).Want(200).Get("").([]any) {
			all = append(all, fmt.Sprint(item.(map[string]any)["answers"].([]any)[0].(map[string]any)["value"]))
		}

		return strings.Join(all, "|")
	}

	everyone := `Ann|100%|100 per cent|a_b|axb|back\slash|É😀|it's`
	for query, want := range map[string]string{
		"": everyone + "|begun", "state=complete": everyone, "state=partial": "begun",
		"limit=2&page=2": "100 per cent|a_b", "sort=submittedAt&order=asc&limit=1": "Ann",
		"order=desc&limit=1": "begun", "search=%25": "100%", "search=_": "a_b", "search=%5C": `back\slash`,
		"search=ANN": "Ann", "search=%27": "it's", "search=100": "100%|100 per cent", "search=green": "",
		"search=red&limit=1": "Ann", "search=41&limit=1": "Ann", "search=%F0%9F%98%80": "É😀", "search=*": "",
		"search=.": "", "from=2099-01-01": "", "to=2001-01-01": "",
		"from=2001-01-01T00:00:00Z&to=2099-01-01&limit=1": "Ann",
	} {
		if got := names(query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}

	today := f.Get(f.path + "/responses").Want(200).Get("0.createdAt").(string)[:10]
	if got := names("from=" + today + "&to=" + today + "&state=complete"); got != everyone {
		t.Errorf("got %q of this day", got)
	}

	for query, field := range map[string]string{"from=yesterday": "from", "to=2026-02-30": "to", "state=all": "state",
		"sort=answers": "sort", "search=%00": "search",
		"search=" + strings.Repeat("a", 201): "search", "search=%FF": "search", "q=x": "q"} {
		f.Get(f.path + "/responses?" + query).Want(400).Field(field)
		if field != "sort" && field != "q" {
			f.Get(f.path + "/responses/export?" + query).Want(400).Field(field)
		}
	}

	id := f.Get(f.path + "/responses").Want(200).Get("0.uuid").(string)
	f.Get(other.path + "/responses/" + id).Want(404) // of another form
	f.Delete(other.path + "/responses/" + id).Want(404)
	f.Get(f.path + "/responses/garbage").Want(400)
	f.Get("/forms/" + apitest.MissingUUID + "/responses").Want(404)
}

func deleteResponse(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "name", "type": "text"}`, "")
	id := f.answer(`{"name": "Ann"}`).Want(201).Get("uuid").(string)
	partial := f.Post(f.path+"/responses", `{"answers": {}, "partial": true}`).Want(201).Get("uuid").(string)
	counts := concurrently(5, func(int) *apitest.Reply { return f.Delete(f.path + "/responses/" + id) })
	wantCounts(t, counts, map[int]int{200: 1, 404: 4})
	f.Delete(f.path+"/responses/"+partial).Want(200).Content("state", "partial")
	f.Get(f.path).Want(200).Content("totalResponses", 0)
}

func exportResponses(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a,
		`{"label": "=name", "type": "textarea"}, {"label": "age", "type": "number"}, {"label": "tags", "type": "multiselect", "options": "a,b"}, {"label": "old", "type": "text"}`, "")

	f.answer(`{"=name": "=1+1", "age": -5, "tags": ["a", "b"], "old": "@x"}`).Want(201)

	for _, name := range []string{`"+49 30"`, `"-x"`, `"\tx"`, `"a,\"b\"\r\nc"`, `"plain"`, `"😀 é\u202e"`, `"'=x"`} {
		f.answer(`{"=name": ` + name + `}`).Want(201)
	}

	f.Delete(f.path + "/fields/" + f.fields["old"]).Want(200)
	f.Put(f.path+"/fields/"+f.fields["age"], `{"label": "years", "type": "number"}`).Want(200)
	f.Post(f.path+"/responses", `{"answers": {}, "partial": true}`).Want(201)

	r := f.Get(f.path + "/responses/export?state=complete").Want(200)
	if h := r.Header; !strings.HasPrefix(h.Get("Content-Type"), "text/csv") ||
		!strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || h.Get("Cache-Control") != "no-store" {
		t.Errorf("got headers %v", h)
	}

	lines, err := csv.NewReader(strings.NewReader(string(r.Body))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}

	if got, want := lines[0], []string{
		"uuid", "state", "version", "createdAt", "submittedAt", "'=name", "years", "tags", "old",
	}; !slices.Equal(got, want) {
		t.Errorf("got head %q, want %q", got, want)
	}
	if got, want := lines[1][5:], []string{"'=1+1", "-5", "a; b", "'@x"}; !slices.Equal(got, want) {
		t.Errorf("got line %q, want %q", got, want)
	}

	// The CSV reader turns \r\n into \n.
	for i, want := range []string{"'+49 30", "'-x", "'\tx", "a,\"b\"\nc", "plain", "😀 é\u202e", "'=x"} {
		if got := lines[i+2][5]; got != want {
			t.Errorf("line %d: got %q, want %q", i+2, got, want)
		}
	}

	if len(lines) != 9 {
		t.Errorf("got %d lines, want 9", len(lines))
	}

	// More rows than a batch, many with the same time: each appears once.
	execute(t, a, `insert into forms.responses (uuid, form_uuid, version, state, answers, submitted_at)
		select gen_random_uuid(), form_uuid, version, 'complete', '{}', now() from forms.responses r, generate_series(1, 1500) where r.state = 'partial' and form_uuid = '`+f.id()+`'`)

	lines, err = csv.NewReader(strings.NewReader(string(f.Get(f.path + "/responses/export").Want(200).Body))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}

	seen := map[string]bool{}
	for _, line := range lines {
		seen[line[0]] = true
	}

	if len(lines) != 1510 || len(seen) != 1510 {
		t.Errorf("got %d lines for %d responses, want 1510 with the header", len(lines), len(seen))
	}
}

func getFormStatistics(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a,
		`{"label": "name", "type": "text"}, {"label": "age", "type": "number"}, {"label": "tags", "type": "multiselect", "options": "a,b,c"},
		{"label": "choice", "type": "radio", "options": "x,y"}, {"label": "stars", "type": "rating"}, {"label": "consent", "type": "checkbox"}`, `"honeypot": "web"`)
	f.Get(f.path+"/statistics").Want(200).Content("total", 0).Content("days", "[]").Content("fields.1.min", nil).
		Content("fields.0.ratio", 0)

	f.answer(`{"name": "Ann", "age": 1.5, "tags": ["a", "b"], "choice": "y", "stars": 5, "consent": true}`).Want(201)
	f.answer(`{"name": "Ben", "age": -2, "tags": ["a"], "choice": "y", "stars": 4, "consent": false}`).Want(201)
	f.answer(`{"name": "Cem", "age": 123456789012345678901234567890}`).Want(201)
	f.answer(`{}`).Want(201)
	f.answer(`{"web": "x"}`).Want(201)
	f.Post(f.path+"/responses", f.answers(`{"answers": {"age": 99, "tags": ["c"]}, "partial": true}`)).Want(201)

	r := f.Get(f.path+"/statistics").Want(200).Content("total", 4).Content("partial", 1).Content("blocked", 1).
		Content("days.0.count", 4).
		Content("fields.0.label", "name").Content("fields.0.answered", 3).Content("fields.0.ratio", 0.75).
		Content("fields.0.options", "[]").
		Content("fields.1.min", -2).Content("fields.1.max", "123456789012345678901234567890").
		Content("fields.1.average", "41152263004115226300411522629.833333").
		Content("fields.4.average", 4.5).Content("fields.4.min", 4)

	options := func(field int) string {
		var all []string
		for _, o := range r.Get(fmt.Sprintf("fields.%d.options", field)).([]any) {
			all = append(all, fmt.Sprint(o.(map[string]any)["option"], " ", o.(map[string]any)["count"]))
		}

		return strings.Join(all, ", ")
	}

	for field, want := range map[int]string{2: "a 2, b 1, c 0", 3: "y 2, x 0", 4: "4 1, 5 1", 5: "false 1, true 1"} {
		if got := options(field); got != want {
			t.Errorf("field %d: got options %s, want %s", field, got, want)
		}
	}

	// After a change of a field's type, the statistics count the values that fit it.
	f.Put(f.path+"/fields/"+f.fields["choice"], `{"label": "choice", "type": "number"}`).Want(200)
	f.Put(f.path+"/fields/"+f.fields["name"], `{"label": "name", "type": "select", "options": "Ann"}`).Want(200)
	r = f.Get(f.path+"/statistics").Want(200).Content("fields.3.answered", 2).Content("fields.3.min", nil)

	if got := options(0); got != "Ann 1, Ben 1, Cem 1" {
		t.Errorf("got options %s", got)
	}

	f.Get("/forms/" + apitest.MissingUUID + "/statistics").Want(404)
}

// partialResponse checks that a response can be saved in parts, and completed when it satisfies
// every rule.
func partialResponse(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a,
		`{"label": "name", "type": "text", "is_required": true}, {"label": "mail", "type": "email"}, {"label": "gone", "type": "text"}`, `"success_message": "Thanks"`)

	r := f.Post(f.path+"/responses", f.answers(`{"answers": {"mail": "half", "gone": "x"}, "partial": true}`)).
		Want(201).Content("state", "partial").
		Content("submittedAt", nil).Content("successMessage", nil)
	if r.Header.Get("Cache-Control") != "no-store" || r.Get("expiresAt") == nil {
		t.Errorf("got %v %s", r.Header, r.Body)
	}

	path, token := f.path+"/responses/"+r.Get("uuid").(string), r.Metadata("token").(string)
	put := func(token, body string) *apitest.Reply {
		return f.Put(path, f.answers(`{"token": "`+token+`", `+body+`}`))
	}

	put(token, `"partial": true, "answers": {"name": "Ann"}`).Want(200).Content("state", "partial")
	f.Get(path).Want(200).Content("state", "partial").Content("answers.0.value", "Ann").
		Content("answers.1.value", "half")

	put(token, `"answers": {}`).Want(422).Field("answers." + f.fields["mail"])
	put(token, `"answers": {"mail": null, "name": null}`).Want(422).Field("answers." + f.fields["name"])
	f.Get(path).Want(200).Content("answers.0.value", "Ann") // the refused requests changed nothing
	put(token, `"partial": true, "answers": {"mail": 5}`).Want(422).Field("answers." + f.fields["mail"])
	put(token, `"partial": true, "answers": {"nope": 5}`).Want(422).Field("answers.nope")
	f.Put(path, `{"answers": {}}`).Want(422).Field("token")
	f.Put(path, `{`).Want(400)

	for _, wrong := range []string{"", "x", strings.ToLower(token)} {
		wantEqual(t, put(wrong, `"answers": {}`).Want(404),
			f.Put(f.path+"/responses/"+apitest.MissingUUID, `{"token": "`+token+`"}`).Want(404))
	}

	f.Put("/forms/"+apitest.MissingUUID+"/responses/"+apitest.MissingUUID, `{}`).Want(404)
	f.Delete(f.path + "/fields/" + f.fields["gone"]).Want(200) // an answer to a deleted field is ignored
	f.Put(f.path, `{"state": "closed"}`).Want(200)
	put(token, `"answers": {"mail": null}`).Want(409).Code("form_closed")
	f.Put(f.path, `{"state": "open"}`).Want(200)

	got := concurrently(5, func(int) *apitest.Reply { return put(token, `"answers": {"mail": "ann@example.com"}`) })
	wantCounts(t, got, map[int]int{200: 1, 404: 4})
	f.Get(path).Want(200).Content("state", "complete").Content("expiresAt", nil).Content("answers.0.value", "Ann").
		Content("answers.1.value", "ann@example.com")

	put(token, `"partial": true`).Want(404) // a complete response is final
	f.Get(f.path).Want(200).Content("totalResponses", 1)

	if query[string](t, a, `select coalesce(token_hash::text, 'none') from forms.responses where form_uuid = $1`, f.id()) != "none" ||
		strings.Contains(a.Log.String(), token) {
		t.Error("the secret is kept, or in the log")
	}
}

func partialResponseExpires(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "name", "type": "text"}`, `"honeypot": "web"`)
	r := f.Post(f.path+"/responses", `{"answers": {}, "partial": true}`).Want(201)
	path, token := f.path+"/responses/"+r.Get("uuid").(string), r.Metadata("token").(string)

	// The response of a bot is never completed.
	f.Put(path, `{"token": "`+token+`", "answers": {"web": "x"}}`).Want(200).Content("state", "partial")
	execute(t, a, `update forms.responses set expires_at = now() where form_uuid = '`+f.id()+`'`)
	f.Put(path, `{"token": "`+token+`"}`).Want(404)
}

// conditionalForms checks that reads of forms have an ETag, and that changes honor If-Match.
func conditionalForms(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "name", "type": "text"}`, "")
	field, response := f.path+"/fields/"+f.fields["name"], f.path+"/responses/"+f.answer(`{"name": "Ann"}`).Want(201).
		Get("uuid").(string)

	tags := map[string]string{}
	for _, path := range []string{
		"/forms", f.path, f.path + "/fields", field, f.path + "/public", f.path + "/responses", response,
		f.path + "/statistics",
	} {
		tags[path] = f.Get(path).Want(200).Header.Get("ETag")
		f.Send("GET", path, "", "If-None-Match: "+tags[path]).Want(304)
	}

	f.Put(f.path, `{"description": "changed"}`).Want(200)
	f.Send("PUT", f.path, `{"description": "again"}`, "If-Match: "+tags[f.path]).Want(412)
	f.Send("DELETE", f.path+"?force=true", "", "If-Match: "+tags[f.path]).Want(412)
	f.Send("DELETE", response, "", `If-Match: "other"`).Want(412)
	f.Send("DELETE", response, "", "If-Match: "+tags[response]).Want(200)
	f.Send("DELETE", field, "", `If-Match: "other"`).Want(412)
	f.Send("DELETE", field, "", "If-Match: "+tags[field]).Want(200)
}

// TestResponseReplayed checks that a response that is sent again under its idempotency key is
// stored once.
func TestResponseReplayed(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := openSurvey(t, a, `{"label": "name", "type": "text"}`, "")
	link := f.Post(f.path+"/link", "").Want(201).Get("link").(string)

	send := func(name string) *apitest.Reply {
		return a.Anonymous().Send("POST", f.path+"/responses?link="+link,
			f.answers(`{"answers": {"name": "`+name+`"}}`),
			"Idempotency-Key: once")
	}

	first := send("Ann").Want(201).Get("uuid")
	send("Ann").Want(201).Content("uuid", first)
	send("Ben").Want(409) // another request under the same key
	f.Get(f.path).Want(200).Content("totalResponses", 1)

	if entries := query[string](t, a, `select string_agg(entry, ' ') from `+apitest.AuditLog); strings.Contains(entries,
		"Ann") || strings.Contains(entries, link) {
		t.Errorf("the audit log contains answers or the link: %s", entries)
	}
}
